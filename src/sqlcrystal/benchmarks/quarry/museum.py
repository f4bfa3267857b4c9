"""A museum: its objects, the exhibitions they were shown in, loans to other houses and reports on their condition."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "museum collections"
CONVENTIONS = {
    "category-codes": "objects.category is PNT painting, SCU sculpture, CER ceramic, TEX textile, DRW drawing or "
    "FUR furniture.",
    "empty-not-null": "objects.deaccessioned is the empty string while the object is in the collection, else a date.",
    "text-height": "objects.height is text with its unit, such as '45.5 cm', so that it does not sort as a number.",
    "country-codes": "institutions.country is the ISO code of two letters, such as DE.",
    "loan-states": "loans.state is PLN planned, OUT on loan now, RET returned or CNL cancelled.",
    "month-name-dates": "exhibitions.opened and exhibitions.closed are text such as '07 Mar 2021'.",
    "visitors-minus-one": "exhibitions.visitors is -1 where the visitors were not counted.",
    "condition-letters": "condition_reports.rating is E excellent, G good, F fair or P poor; an object has several "
    "reports, of which the latest holds.",
}
SCHEMA = """
CREATE TABLE objects (
  object_id INTEGER PRIMARY KEY,
  title TEXT,
  maker TEXT,
  category TEXT,
  year_made INTEGER,
  height TEXT,
  location TEXT,
  deaccessioned TEXT
);
CREATE TABLE exhibitions (
  exhibition_id INTEGER PRIMARY KEY,
  name TEXT,
  venue TEXT,
  opened TEXT,
  closed TEXT,
  visitors INTEGER
);
CREATE TABLE exhibits (
  exhibition_id INTEGER REFERENCES exhibitions(exhibition_id),
  object_id INTEGER REFERENCES objects(object_id),
  PRIMARY KEY (exhibition_id, object_id)
);
CREATE TABLE institutions (
  institution_id INTEGER PRIMARY KEY,
  name TEXT,
  city TEXT,
  country TEXT
);
CREATE TABLE loans (
  loan_id INTEGER PRIMARY KEY,
  object_id INTEGER REFERENCES objects(object_id),
  institution_id INTEGER REFERENCES institutions(institution_id),
  start_date TEXT,
  state TEXT,
  insured_value INTEGER
);
CREATE TABLE condition_reports (
  report_id INTEGER PRIMARY KEY,
  object_id INTEGER REFERENCES objects(object_id),
  reported_on TEXT,
  conservator TEXT,
  rating TEXT
);
"""

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
MAKERS = [
    "Jan Verhoeven", "Clara Monti", "Workshop of Delft", "Emil Sand", "Agnes Thorne", "Pietro Galli", "Louise Marchand",
    "Hendrik Bol", "Isabel Ortega", "Karl Weidner", "Mary Ashby", "Theodor Lind", "Sofia Brandt", "Unknown maker",
]  # fmt: skip
ADJECTIVES = ["Blue", "Silent", "Golden", "Broken", "Winter", "Seated", "Painted", "Small", "Red", "Distant", "Veiled"]
NOUNS = {
    "PNT": ["Harbour", "Portrait", "Landscape", "Still Life", "Market", "Garden"],
    "SCU": ["Figure", "Head", "Dancer", "Horse", "Saint"],
    "CER": ["Vase", "Bowl", "Tile", "Jug"],
    "TEX": ["Tapestry", "Shawl", "Carpet"],
    "DRW": ["Study", "Sketch", "Nude"],
    "FUR": ["Chair", "Cabinet", "Table"],
}
CATEGORIES = ["PNT", "PNT", "PNT", "SCU", "SCU", "CER", "CER", "TEX", "DRW", "DRW", "FUR"]
HEIGHTS = {
    "PNT": (220, 1900),
    "SCU": (120, 2400),
    "CER": (60, 700),
    "TEX": (400, 2900),
    "DRW": (90, 600),
    "FUR": (380, 2300),
}
LOCATIONS = ["Gallery A", "Gallery B", "Gallery C", "Depot 1", "Depot 2", "Depot 2", "Depot 3", "Depot 3"]
THEMES = [
    "Light",
    "Water",
    "Silk Roads",
    "The Body",
    "Craft",
    "Masters",
    "Memory",
    "Gardens",
    "Night",
    "Colour",
    "Faces",
]
FRAMES = ["{} and Form", "In Praise of {}", "{}: New Acquisitions", "Looking at {}", "{} Revisited"]
VENUES = ["North Wing", "South Wing", "Rotunda", "Print Room"]
CITIES = [
    ("Berlin", "DE"), ("Munich", "DE"), ("Hamburg", "DE"), ("Paris", "FR"), ("Lyon", "FR"), ("Rome", "IT"),
    ("Turin", "IT"), ("Florence", "IT"), ("Vienna", "AT"), ("Madrid", "ES"), ("Bilbao", "ES"), ("London", "GB"),
    ("Glasgow", "GB"), ("Tokyo", "JP"), ("Chicago", "US"), ("Boston", "US"),
]  # fmt: skip
HOUSES = ["Museum of Fine Arts", "City Gallery", "National Museum"]
CONSERVATORS = ["Ida Falk", "Ben Moreau", "Greta Olsen", "Tomas Rivera", "Yuki Arai"]


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    objects = 640
    yield "objects", [_object(random, key) for key in range(1, objects + 1)]
    exhibitions = _exhibitions(random)
    yield "exhibitions", exhibitions
    yield "exhibits", _exhibits(random, len(exhibitions), objects)
    houses = [(f"{house} {city}", city, country) for city, country in CITIES for house in HOUSES]
    yield "institutions", [(key, *house) for key, house in enumerate(houses, 1)]
    yield "loans", [_loan(random, key, objects, len(houses)) for key in range(1, 901)]
    yield "condition_reports", _reports(random, objects)


def _object(random: Random, key: int) -> tuple[object, ...]:
    category = random.choice(CATEGORIES)
    title = f"{random.choice(ADJECTIVES)} {random.choice(NOUNS[category])} no. {key}"
    millimetres = random.randrange(*HEIGHTS[category])
    deaccessioned = str(date(1988, 2, 1) + timedelta(days=random.randrange(12000))) if random.random() < 0.06 else ""
    year, height = random.randrange(1580, 2006), f"{millimetres // 10}.{millimetres % 10} cm"
    return (key, title, random.choice(MAKERS), category, year, height, random.choice(LOCATIONS), deaccessioned)


def _named(day: date) -> str:
    return f"{day.day:02d} {MONTHS[day.month - 1]} {day.year}"


def _exhibitions(random: Random) -> list[tuple[object, ...]]:
    names = [frame.format(theme) for theme in THEMES for frame in FRAMES]
    random.shuffle(names)
    exhibitions: list[tuple[object, ...]] = []
    for key, name in enumerate(names, 1):
        opened = date(2014, 1, 10) + timedelta(days=random.randrange(3560))
        closed = opened + timedelta(days=random.randrange(45, 190))
        visitors = -1 if random.random() < 0.2 else random.randrange(2100, 91000)
        exhibitions.append((key, name, random.choice(VENUES), _named(opened), _named(closed), visitors))
    return exhibitions


def _exhibits(random: Random, exhibitions: int, objects: int) -> list[tuple[object, ...]]:
    exhibits: list[tuple[object, ...]] = []
    for exhibition in range(1, exhibitions + 1):
        keys = list(range(1, objects + 1))
        random.shuffle(keys)
        exhibits += [(exhibition, key) for key in sorted(keys[: random.randrange(8, 34)])]
    return exhibits


def _loan(random: Random, key: int, objects: int, houses: int) -> tuple[object, ...]:
    state = random.choice(["RET", "RET", "RET", "RET", "RET", "RET", "OUT", "PLN", "CNL"])
    first = {"OUT": date(2023, 9, 1), "PLN": date(2024, 2, 1)}.get(state, date(2012, 1, 1))
    start = first + timedelta(days=random.randrange(120 if state in ("OUT", "PLN") else 4000))
    value = random.randrange(3, 900) * 500
    return (key, random.randrange(1, objects + 1), random.randrange(1, houses + 1), str(start), state, value)


def _reports(random: Random, objects: int) -> list[tuple[object, ...]]:
    reports: list[tuple[object, ...]] = []
    for key in range(1, objects + 1):
        day = date(2010, 1, 4) + timedelta(days=random.randrange(900))
        for _report in range(random.randrange(1, 6)):
            rating = random.choice(["E", "G", "G", "G", "F", "F", "P"])
            reports.append((len(reports) + 1, key, str(day), random.choice(CONSERVATORS), rating))
            day += timedelta(days=random.randrange(200, 900))
    return reports
