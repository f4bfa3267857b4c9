"""Aircraft maintenance: a fleet, its components, its work orders, its technicians and its flights."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "aircraft maintenance"
CONVENTIONS = {
    "aircraft-status": "aircraft.status is a code: SVC in service, MNT in maintenance, STO stored, RET retired.",
    "icao-airports": "Bases, origins and destinations are ICAO airport codes: EDDF is Frankfurt, EGLL London Heathrow.",
    "fitted-sentinel": "component.removed_on is 9999-12-31 while the component is still fitted; it is never NULL.",
    "no-life-limit": "component.life_limit_hours is -1 where a component has no life limit.",
    "dotted-dates": "work_order.opened_on and closed_on are text, DD.MM.YYYY; all other dates are YYYY-MM-DD.",
    "order-kinds": "work_order.kind is a code: SCH scheduled, UNS unscheduled, AD airworthiness directive, "
    "MOD modification.",
    "minutes": "flight.duration is in minutes.",
}
SCHEMA = """CREATE TABLE aircraft (
  tail_number TEXT PRIMARY KEY,
  model TEXT,
  manufacturer TEXT,
  built_year INTEGER,
  base TEXT,
  status TEXT
);
CREATE TABLE component (
  component_id INTEGER PRIMARY KEY,
  tail_number TEXT,
  kind TEXT,
  serial_number TEXT,
  installed_on TEXT,
  removed_on TEXT,
  life_limit_hours INTEGER,
  weight_kg REAL,
  FOREIGN KEY (tail_number) REFERENCES aircraft (tail_number)
);
CREATE TABLE technician (
  technician_id INTEGER PRIMARY KEY,
  first_name TEXT,
  last_name TEXT,
  base TEXT,
  hired_on TEXT,
  hourly_rate REAL
);
CREATE TABLE work_order (
  order_id INTEGER PRIMARY KEY,
  tail_number TEXT,
  kind TEXT,
  opened_on TEXT,
  closed_on TEXT,
  FOREIGN KEY (tail_number) REFERENCES aircraft (tail_number)
);
CREATE TABLE labour (
  order_id INTEGER,
  technician_id INTEGER,
  minutes INTEGER,
  PRIMARY KEY (order_id, technician_id),
  FOREIGN KEY (order_id) REFERENCES work_order (order_id),
  FOREIGN KEY (technician_id) REFERENCES technician (technician_id)
);
CREATE TABLE flight (
  flight_id INTEGER PRIMARY KEY,
  tail_number TEXT,
  flown_on TEXT,
  origin TEXT,
  destination TEXT,
  duration INTEGER,
  FOREIGN KEY (tail_number) REFERENCES aircraft (tail_number)
);"""

MODELS = [
    ("A320", "Airbus"),
    ("A321", "Airbus"),
    ("A350", "Airbus"),
    ("B737", "Boeing"),
    ("B787", "Boeing"),
    ("E190", "Embraer"),
    ("ATR 72", "ATR"),
]
BASES = ["EDDF", "EDDM", "EGLL", "LFPG", "LEMD", "LOWW"]
AIRPORTS = [*BASES, "LIRF", "EHAM", "LSZH", "ESSA", "KJFK", "OMDB", "WSSS"]
KINDS = [("engine", 2300, 0), ("apu", 210, 25000), ("landing gear", 940, 30000), ("propeller", 180, 12000)]
KINDS += [("wheel", 95, 0), ("brake", 110, 6000), ("fuel pump", 14, 15000), ("radar", 22, 0)]
FIRST = "Anna Boris Carla David Elif Farid Greta Hugo Ines Jonas Katja Liam Marta Nils Olga Paul Rosa Sven Tara Viktor"
LAST = (
    "Adler Bauer Conti Dubois Eriksen Fuchs Garcia Haas Ivanov Jansen Kaya Lang Moreau Novak Okoye Peters Quinn Rossi "
    "Sauer Tanaka Ueda Vogel Weber Yilmaz Zimmer Brandt Costa Duarte Ferro Graf"
)


def day(random: Random, first_year: int, last_year: int) -> date:
    """Draw a day between two years."""
    start = date(first_year, 1, 1)
    return start + timedelta(days=random.randrange((date(last_year, 12, 31) - start).days + 1))


def dotted(value: date) -> str:
    """Write a date as the work orders do."""
    return f"{value.day:02d}.{value.month:02d}.{value.year}"


def components(random: Random, tails: list[str]) -> list[tuple[object, ...]]:
    """Fit each aircraft with components, some of them removed since."""
    table: list[tuple[object, ...]] = []
    for tail in tails:
        for _ in range(11 + random.randrange(8)):
            kind, weight, limit = random.choice(KINDS)
            installed = day(random, 2012, 2023)
            still_fitted = random.random() < 0.6
            removed = "9999-12-31" if still_fitted else str(installed + timedelta(days=60 + random.randrange(700)))
            hours = limit + 500 * random.randrange(5) if limit and random.random() < 0.85 else -1
            kilograms = round(weight * (0.9 + random.randrange(21) / 100), 1)
            number = len(table) + 1
            serial = f"{kind[:2].upper()}{10000 + number * 37}"
            table.append((number, tail, kind, serial, str(installed), removed, hours, kilograms))
    return table


def technicians(random: Random) -> list[tuple[object, ...]]:
    """Hire the technicians; no two share a last name."""
    first = FIRST.split()
    return [
        (
            i,
            random.choice(first),
            last,
            random.choice(BASES),
            str(day(random, 2005, 2023)),
            32 + random.randrange(57) / 2,
        )
        for i, last in enumerate(LAST.split(), 1)
    ]


def work_orders(random: Random, tails: list[str]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Open the work orders and book labour on them."""
    orders: list[tuple[object, ...]] = []
    labour: list[tuple[object, ...]] = []
    for number in range(1, 1001):
        opened = day(random, 2020, 2024)
        closed = None if random.random() < 0.12 else dotted(opened + timedelta(days=1 + random.randrange(40)))
        kind = random.choice(["SCH", "SCH", "SCH", "UNS", "UNS", "AD", "MOD"])
        orders.append((number, random.choice(tails), kind, dotted(opened), closed))
        crew = list(range(1, len(LAST.split()) + 1))
        random.shuffle(crew)
        labour += [(number, crew[i], 15 * (2 + random.randrange(40)) + i) for i in range(1 + random.randrange(3))]
    return orders, labour


def flights(random: Random, tails: list[str]) -> list[tuple[object, ...]]:
    """Fly the fleet; only flights beyond Europe last long."""
    table: list[tuple[object, ...]] = []
    for number in range(1, 4001):
        places = list(AIRPORTS)
        random.shuffle(places)
        far = max(AIRPORTS.index(places[0]), AIRPORTS.index(places[1])) >= 10
        minutes = 380 + random.randrange(420) if far else 50 + random.randrange(130)
        table.append((number, random.choice(tails), str(day(random, 2022, 2024)), places[0], places[1], minutes))
    table.append((4001, tails[7], "2023-06-18", "LFPG", "WSSS", 871))
    return table


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    fleet: list[tuple[object, ...]] = []
    tails: list[str] = []
    for number in range(64):
        model, manufacturer = random.choice(MODELS)
        tails.append(f"D-A{'BCDEFGHK'[number // 8]}{'LMNPRSTV'[number % 8]}{'XYZ'[number % 3]}")
        status = random.choice(["SVC", "SVC", "SVC", "SVC", "MNT", "STO", "RET"])
        fleet.append((tails[-1], model, manufacturer, 1992 + random.randrange(30), random.choice(BASES), status))
    yield "aircraft", fleet
    yield "component", components(random, tails)
    yield "technician", technicians(random)
    orders, labour = work_orders(random, tails)
    yield "work_order", orders
    yield "labour", labour
    yield "flight", flights(random, tails)
