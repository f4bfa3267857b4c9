"""A city's building department: parcels, permits, the inspections made under them and the fees charged."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "city building permits"
CONVENTIONS = {
    "permit-type-codes": "permits.permit_type is a code: NEW new construction, ALT alteration, DEM demolition, "
    "ELE electrical, PLB plumbing.",
    "permit-status-codes": "permits.status is a code: REV under review, ISS issued, FIN finaled, EXP expired, "
    "WDR withdrawn.",
    "us-dates": "permits.applied and permits.issued are text as MM/DD/YYYY; issued is NULL while there is no issue.",
    "text-valuation": "permits.valuation is text in dollars with thousands commas, such as '125,000'.",
    "fee-cents": "fees.amount is in cents.",
    "one-letter-codes": "inspections.result is P passed, F failed, C cancelled or N no access; fees.paid is Y or N.",
    "minutes-999": "inspections.minutes is 999 where the length was not recorded.",
    "upper-districts": "parcels.district is in capitals.",
}
SCHEMA = """
CREATE TABLE parcels (
  parcel_id INTEGER PRIMARY KEY,
  address TEXT,
  district TEXT,
  zone_code TEXT,
  lot_area INTEGER
);
CREATE TABLE contractors (
  contractor_id INTEGER PRIMARY KEY,
  name TEXT,
  city TEXT,
  license_status TEXT
);
CREATE TABLE inspectors (
  inspector_id INTEGER PRIMARY KEY,
  full_name TEXT,
  team TEXT,
  hired_on TEXT
);
CREATE TABLE permits (
  permit_no TEXT PRIMARY KEY,
  parcel_id INTEGER REFERENCES parcels(parcel_id),
  contractor_id INTEGER REFERENCES contractors(contractor_id),
  permit_type TEXT,
  applied TEXT,
  issued TEXT,
  status TEXT,
  valuation TEXT
);
CREATE TABLE inspections (
  inspection_id INTEGER PRIMARY KEY,
  permit_no TEXT REFERENCES permits(permit_no),
  inspector_id INTEGER REFERENCES inspectors(inspector_id),
  kind TEXT,
  inspected_on TEXT,
  result TEXT,
  minutes INTEGER
);
CREATE TABLE fees (
  fee_id INTEGER PRIMARY KEY,
  permit_no TEXT REFERENCES permits(permit_no),
  fee_type TEXT,
  amount INTEGER,
  paid TEXT
);
"""

DISTRICTS = ["HARBOR", "OLD TOWN", "NORTHGATE", "MILL HILL", "RIVERSIDE", "EASTBROOK", "UNIVERSITY"]
STREETS = ["Alder St", "Birch Ave", "Canal Rd", "Dock St", "Elm St", "Foundry Ln", "Grove Ave", "Hill Rd", "Iron St"]
ZONES = ["R1", "R1", "R1", "R2", "R2", "C1", "C2", "M1"]
FIRST = [
    "Kestrel",
    "Granite",
    "Blue Door",
    "Summit",
    "Harlan",
    "Oakline",
    "Pioneer",
    "Redwood",
    "Sterling",
    "Tidewater",
]
SECOND = ["Builders", "Construction", "Electric", "Plumbing"]
CITIES = ["Eastbrook", "Fairmont", "Lakeside", "Port Ellis", "Weston"]
INSPECTORS = [
    "Dana Whitlock", "Marcus Bell", "Priya Raman", "Tom Okafor", "Elena Cruz", "Walter Finch", "Joan Sato", "Luis Vega",
    "Karen Boyd", "Amir Haddad", "Ruth Lindgren", "Paul Novak", "Grace Kim", "Owen Tully", "Nadia Petrov", "Sam Archer",
]  # fmt: skip
TEAMS = ["Structural", "Electrical", "Plumbing", "Structural", "Fire Safety"]
TYPES = ["NEW", "ALT", "ALT", "ALT", "DEM", "ELE", "ELE", "PLB", "PLB"]
VALUES = {"NEW": (180, 2400), "ALT": (8, 260), "DEM": (5, 90), "ELE": (1, 40), "PLB": (1, 35)}
STATUSES = ["REV", "ISS", "ISS", "ISS", "FIN", "FIN", "FIN", "FIN", "EXP", "WDR"]
KINDS = {
    "NEW": ["foundation", "framing", "electrical", "plumbing", "final"],
    "ALT": ["framing", "electrical", "final"],
    "DEM": ["site", "final"],
    "ELE": ["electrical", "final"],
    "PLB": ["plumbing", "final"],
}
FEE_TYPES = [
    ("permit", 9500, 64000),
    ("plan review", 4200, 31000),
    ("technology", 1150, 2900),
    ("impact", 80000, 420000),
]
RESULTS = ["P", "P", "P", "P", "P", "F", "F", "C", "N"]


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    yield "parcels", [_parcel(random, key) for key in range(1, 321)]
    yield "contractors", _contractors(random)
    yield (
        "inspectors",
        [
            (key, name, random.choice(TEAMS), str(date(2006, 1, 9) + timedelta(days=random.randrange(6200))))
            for key, name in enumerate(INSPECTORS, 1)
        ],
    )
    permits = [_permit(random, key) for key in range(1, 901)]
    yield "permits", [(*permit[:4], _us(permit[4]), _us(permit[5]), *permit[6:]) for permit in permits]
    yield "inspections", _inspections(random, permits)
    yield "fees", _fees(random, permits)


def _us(day: date | None) -> str | None:
    return None if day is None else f"{day.month:02d}/{day.day:02d}/{day.year}"


def _parcel(random: Random, key: int) -> tuple[object, ...]:
    address = f"{random.randrange(1, 990)} {random.choice(STREETS)}"
    return (key, address, random.choice(DISTRICTS), random.choice(ZONES), random.randrange(2400, 21000))


def _contractors(random: Random) -> list[tuple[object, ...]]:
    names = [f"{first} {second}" for first in FIRST for second in SECOND]
    licenses = ["active", "active", "active", "active", "expired", "suspended"]
    return [(key, name, random.choice(CITIES), random.choice(licenses)) for key, name in enumerate(names, 1)]


Permit = tuple[str, int, int, str, date, date | None, str, str]


def _permit(random: Random, key: int) -> Permit:
    kind, status = random.choice(TYPES), random.choice(STATUSES)
    applied = date(2020, 1, 6) + timedelta(days=random.randrange(1600))
    issued = applied + timedelta(days=random.randrange(4, 120 if kind == "NEW" else 60))
    low, high = VALUES[kind]
    valuation = random.randrange(low * 10, high * 10) * 100
    waiting = status in ("REV", "WDR")
    number = f"B{applied.year % 100}-{key:05d}"
    parcel, contractor = random.randrange(1, 321), random.randrange(1, 41)
    return (number, parcel, contractor, kind, applied, None if waiting else issued, status, f"{valuation:,}")


def _inspections(random: Random, permits: list[Permit]) -> list[tuple[object, ...]]:
    inspections: list[tuple[object, ...]] = []
    for number, _parcel_id, _contractor_id, permit_type, _applied, issued, _status, _valuation in permits:
        if issued is None:
            continue
        day = issued
        for kind in KINDS[permit_type]:
            result = ""
            while result != "P" and len(inspections) < 9000:
                day += timedelta(days=random.randrange(3, 40))
                result = random.choice(RESULTS)
                minutes = 999 if random.random() < 0.08 else random.randrange(3, 31) * 5
                inspector = 1 + int(random.random() ** 1.4 * len(INSPECTORS))
                inspections.append((len(inspections) + 1, number, inspector, kind, str(day), result, minutes))
    return inspections


def _fees(random: Random, permits: list[Permit]) -> list[tuple[object, ...]]:
    fees: list[tuple[object, ...]] = []
    for permit in permits:
        for fee_type, low, high in FEE_TYPES[: 4 if permit[3] == "NEW" else random.randrange(1, 4)]:
            paid = "N" if random.random() < 0.17 else "Y"
            fees.append((len(fees) + 1, permit[0], fee_type, random.randrange(low, high), paid))
    return fees
