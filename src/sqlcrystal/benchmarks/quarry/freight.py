"""A road freight forwarder in the United States: its customers, carriers, rates, shipments, tracking and invoices."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "logistics"
CONVENTIONS = {
    "integer-dates": "shipments.ship_date is an integer YYYYMMDD, unlike the ISO text of the other tables.",
    "weight-units": "shipments.weight is in the unit that weight_unit names, KG or LB (1 LB = 0.4536 KG).",
    "event-codes": "tracking.code is PU (picked up), HB (at hub), DL (delivered), EX (exception) or RT (returned).",
    "void-invoices": "invoices.void is 'Y' for an invoice that was voided and does not count, otherwise 'N'.",
    "open-ended-rates": "rates keeps every version of a price; the one in force has valid_to = '9999-12-31'.",
    "tier-letters": "customers.tier is G (gold), S (silver) or B (bronze).",
    "service-codes": "shipments.service is STD (standard), EXP (express) or OVN (overnight).",
}
SCHEMA = """
CREATE TABLE customers (
    customer_id INTEGER PRIMARY KEY,
    name TEXT,
    city TEXT,
    state TEXT,
    tier TEXT
);
CREATE TABLE carriers (
    carrier_id INTEGER PRIMARY KEY,
    name TEXT,
    home_state TEXT,
    trucks INTEGER
);
CREATE TABLE rates (
    rate_id INTEGER PRIMARY KEY,
    carrier_id INTEGER REFERENCES carriers (carrier_id),
    service TEXT,
    price_per_mile REAL,
    valid_from TEXT,
    valid_to TEXT
);
CREATE TABLE shipments (
    shipment_id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customers (customer_id),
    carrier_id INTEGER REFERENCES carriers (carrier_id),
    service TEXT,
    ship_date INTEGER,
    destination TEXT,
    miles INTEGER,
    weight REAL,
    weight_unit TEXT
);
CREATE TABLE tracking (
    shipment_id INTEGER REFERENCES shipments (shipment_id),
    step INTEGER,
    code TEXT,
    event_date TEXT,
    PRIMARY KEY (shipment_id, step)
);
CREATE TABLE invoices (
    invoice_id INTEGER PRIMARY KEY,
    shipment_id INTEGER REFERENCES shipments (shipment_id),
    amount REAL,
    issued_on TEXT,
    void TEXT
);
"""

CARRIERS = [
    ("Red Mesa Trucking", "AZ", 64),
    ("Lakeshore Haulage", "MI", 112),
    ("Bluegrass Lines", "KY", 48),
    ("Cascade Freightways", "OR", 87),
    ("Tidewater Transport", "VA", 71),
    ("Prairie Star Logistics", "KS", 139),
    ("Granite State Cartage", "NH", 26),
    ("Lone Pine Express", "TX", 158),
    ("Iron Range Carriers", "MN", 93),
]
PLACES = [
    ("Phoenix", "AZ"),
    ("Tucson", "AZ"),
    ("Detroit", "MI"),
    ("Lansing", "MI"),
    ("Louisville", "KY"),
    ("Portland", "OR"),
    ("Norfolk", "VA"),
    ("Wichita", "KS"),
    ("Houston", "TX"),
    ("Dallas", "TX"),
    ("El Paso", "TX"),
    ("Duluth", "MN"),
    ("Denver", "CO"),
    ("Boise", "ID"),
]
FIRST = (
    "Acme Alder Apex Beacon Birch Cobalt Copper Delta Eagle Falcon Harbor Juniper Keystone Maple Orchard Pioneer Summit"
)
LAST = "Foods|Furniture|Glass|Hardware|Medical|Paper|Plastics|Tools|Textiles|Toys"
DESTINATIONS = "Atlanta|Boston|Chicago|Cleveland|Denver|Memphis|Miami|Omaha|Phoenix|Reno|Seattle|Tulsa"
SERVICES = ["STD"] * 6 + ["EXP"] * 3 + ["OVN"]
SERVICE_PRICE = {"STD": 185, "EXP": 260, "OVN": 395}
TIERS = ["B"] * 6 + ["S"] * 3 + ["G"] * 2


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    yield "customers", list(_customers(random))
    yield "carriers", [(number, *carrier) for number, carrier in enumerate(CARRIERS, 1)]
    yield "rates", [(number, *rate) for number, rate in enumerate(_rates(random), 1)]
    days = [date(2022, 1, 3) + timedelta(days=random.randrange(1000)) for _ in range(2200)]
    shipments = [_shipment(random, number, day) for number, day in enumerate(days, 1)]
    yield "shipments", shipments
    yield "tracking", [row for row, day in zip(shipments, days, strict=True) for row in _tracking(random, row, day)]
    invoices = [line for row, day in zip(shipments, days, strict=True) for line in _invoices(random, row, day)]
    yield "invoices", [(number, *line) for number, line in enumerate(invoices, 1)]


def _customers(random: Random) -> Iterator[tuple[object, ...]]:
    firms = [f"{first} {last}" for first in FIRST.split() for last in LAST.split("|")]
    random.shuffle(firms)
    for number, firm in enumerate(firms[:150], 1):
        yield (number, firm, *random.choice(PLACES), random.choice(TIERS))


def _rates(random: Random) -> Iterator[tuple[object, ...]]:
    for carrier in range(1, len(CARRIERS) + 1):
        for service, base in SERVICE_PRICE.items():
            if service == "OVN" and carrier in {3, 7}:
                continue
            price = base + random.randrange(60)
            start = date(2021, 1, 1) + timedelta(days=random.randrange(200))
            for version in range(2 + random.randrange(3)):
                end = start + timedelta(days=200 + random.randrange(220))
                last = version > 0 and random.random() < 0.5
                yield (carrier, service, price / 100, start.isoformat(), "9999-12-31" if last else end.isoformat())
                if last:
                    break
                start = end + timedelta(days=1)
                price += 4 + random.randrange(30)
            else:
                yield (carrier, service, price / 100, start.isoformat(), "9999-12-31")


def _shipment(random: Random, number: int, day: date) -> tuple[object, ...]:
    carrier = 1 + min(random.randrange(len(CARRIERS)), random.randrange(14))
    kilos = 40 + random.randrange(4000)
    unit = "LB" if random.random() < 0.35 else "KG"
    return (
        number,
        1 + min(random.randrange(150), random.randrange(260)),
        carrier,
        "STD" if carrier in {3, 7} else random.choice(SERVICES),
        day.year * 10000 + day.month * 100 + day.day,
        random.choice(DESTINATIONS.split("|")),
        120 + random.randrange(2300),
        float(kilos if unit == "KG" else kilos * 22 // 10),
        unit,
    )


def _tracking(random: Random, shipment: tuple[object, ...], day: date) -> Iterator[tuple[object, ...]]:
    codes = ["PU"] + ["HB"] * random.randrange(3)
    if random.random() < 0.14:
        codes.insert(1 + random.randrange(len(codes)), "EX")
    codes.append("RT" if random.random() < 0.06 else "DL")
    for step, code in enumerate(codes, 1):
        yield (shipment[0], step, code, day.isoformat())
        day += timedelta(days=1 + random.randrange(3))


def _invoices(random: Random, shipment: tuple[object, ...], day: date) -> Iterator[tuple[object, ...]]:
    if random.random() < 0.05:
        return
    cents = int(str(shipment[6])) * SERVICE_PRICE[str(shipment[3])] + random.randrange(20000)
    issued = day + timedelta(days=5 + random.randrange(20))
    if random.random() < 0.12:
        yield (shipment[0], cents * 11 // 10 / 100, issued.isoformat(), "Y")
        issued += timedelta(days=1 + random.randrange(9))
    yield (shipment[0], cents / 100, issued.isoformat(), "N")
