"""A fruit growing co-operative: its growers' plots and harvests, their deliveries and the quality of the fruit."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "fruit growing"
CONVENTIONS = {
    "fruit-codes": "varieties.fruit is AP apple, PE pear, CH cherry or PL plum.",
    "dotted-dates": "harvests.picked_on is text as DD.MM.YYYY.",
    "weight-units": "harvests.weight is in the unit of harvests.unit: kg, or t for tonnes of 1,000 kg.",
    "decimal-comma": "samples.brix is text with a decimal comma, such as '12,4'.",
    "letter-codes": "samples.grade is X extra, 1 first, 2 second class or J juice; plots.irrigation is D drip, "
    "S sprinkler or N none.",
    "year-zero": "plots.planted_year is 0 where the year of planting is unknown.",
    "voided-flag": "deliveries.voided is Y for a delivery entered by mistake, else N.",
}
SCHEMA = """
CREATE TABLE growers (
  grower_id INTEGER PRIMARY KEY,
  name TEXT,
  village TEXT,
  joined_year INTEGER
);
CREATE TABLE varieties (
  variety_id INTEGER PRIMARY KEY,
  variety_name TEXT,
  fruit TEXT
);
CREATE TABLE plots (
  plot_id INTEGER PRIMARY KEY,
  grower_id INTEGER REFERENCES growers(grower_id),
  variety_id INTEGER REFERENCES varieties(variety_id),
  hectares REAL,
  planted_year INTEGER,
  irrigation TEXT
);
CREATE TABLE harvests (
  harvest_id INTEGER PRIMARY KEY,
  plot_id INTEGER REFERENCES plots(plot_id),
  picked_on TEXT,
  weight REAL,
  unit TEXT,
  pickers INTEGER
);
CREATE TABLE deliveries (
  delivery_id INTEGER PRIMARY KEY,
  grower_id INTEGER REFERENCES growers(grower_id),
  variety_id INTEGER REFERENCES varieties(variety_id),
  depot TEXT,
  delivered_on TEXT,
  net_kg INTEGER,
  voided TEXT
);
CREATE TABLE samples (
  sample_id INTEGER PRIMARY KEY,
  delivery_id INTEGER REFERENCES deliveries(delivery_id),
  brix TEXT,
  firmness REAL,
  grade TEXT
);
"""

FAMILY = [
    "Ackermann", "Brunner", "Dietl", "Egger", "Fuchs", "Gasser", "Hofer", "Innerhofer", "Kofler", "Lechner", "Mair",
    "Niederegger", "Oberhauser", "Pichler", "Rainer", "Schwarz", "Thaler", "Unterkircher", "Volgger", "Wieser", "Zanon",
]  # fmt: skip
GIVEN = ["Anna", "Georg", "Josef", "Maria", "Paul", "Rosa"]
VILLAGES = ["Oberfeld", "Lana", "Tramin", "Kaltern", "Schenna", "Marling"]
VARIETIES = [
    ("Gala", "AP"), ("Braeburn", "AP"), ("Golden Delicious", "AP"), ("Fuji", "AP"), ("Topaz", "AP"), ("Elstar", "AP"),
    ("Conference", "PE"), ("Williams", "PE"), ("Abate Fetel", "PE"), ("Comice", "PE"), ("Kordia", "CH"),
    ("Regina", "CH"), ("Lapins", "CH"), ("Hanita", "PL"), ("Stanley", "PL"),
]  # fmt: skip
# Fruit → first day of the year it is picked, days the picking lasts, lowest brix in tenths.
SEASONS = {"AP": (235, 60, 95), "PE": (222, 40, 100), "CH": (160, 35, 128), "PL": (205, 45, 112)}
DEPOTS = ["Nord", "Nord", "Sued", "Sued", "Sued", "Bahnhof"]
GRADES = ["X", "1", "1", "1", "1", "2", "2", "J"]


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    names = [f"{given} {family}" for family in FAMILY for given in GIVEN]
    random.shuffle(names)
    yield (
        "growers",
        [(key, name, random.choice(VILLAGES), random.randrange(1974, 2022)) for key, name in enumerate(names[:90], 1)],
    )
    yield "varieties", [(key, *variety) for key, variety in enumerate(VARIETIES, 1)]
    plots = [_plot(random, key) for key in range(1, 321)]
    yield "plots", list(plots)
    yield "harvests", _harvests(random, plots)
    deliveries = [_delivery(random, key) for key in range(1, 1501)]
    yield "deliveries", list(deliveries)
    yield "samples", _samples(random, deliveries)


Plot = tuple[int, int, int, float, int, str]
Delivery = tuple[int, int, int, str, str, int, str]


def _plot(random: Random, key: int) -> Plot:
    planted = 0 if random.random() < 0.11 else random.randrange(1972, 2019)
    grower, variety = random.randrange(1, 91), random.randrange(1, len(VARIETIES) + 1)
    return (key, grower, variety, random.randrange(18, 420) / 100, planted, random.choice(["D", "D", "S", "S", "N"]))


def _day_of_picking(random: Random, variety: int, year: int) -> date:
    first, days, _brix = SEASONS[VARIETIES[variety - 1][1]]
    return date(year, 1, 1) + timedelta(days=first + random.randrange(days))


def _harvests(random: Random, plots: list[Plot]) -> list[tuple[object, ...]]:
    harvests: list[tuple[object, ...]] = []
    for plot, _grower, variety, hectares, _planted, _irrigation in plots:
        for year in (2020, 2021, 2022, 2023):
            for _pass in range(random.randrange(1, 4)):
                day = _day_of_picking(random, variety, year)
                kilograms = 40 * round(hectares * random.randrange(140, 460))
                weight, unit = (kilograms / 1000, "t") if random.random() < 0.3 else (float(kilograms), "kg")
                picked = f"{day.day:02d}.{day.month:02d}.{day.year}"
                harvests.append((len(harvests) + 1, plot, picked, weight, unit, random.randrange(2, 15)))
    return harvests


def _delivery(random: Random, key: int) -> Delivery:
    variety = random.randrange(1, len(VARIETIES) + 1)
    day = _day_of_picking(random, variety, random.choice([2021, 2022, 2023])) + timedelta(days=random.randrange(3))
    voided = "Y" if random.random() < 0.07 else "N"
    return (
        key,
        random.randrange(1, 91),
        variety,
        random.choice(DEPOTS),
        str(day),
        random.randrange(180, 5200),
        voided,
    )


def _samples(random: Random, deliveries: list[Delivery]) -> list[tuple[object, ...]]:
    samples: list[tuple[object, ...]] = []
    for delivery in deliveries:
        lowest = SEASONS[VARIETIES[delivery[2] - 1][1]][2]
        for _sample in range(random.randrange(4)):
            tenths = lowest + random.randrange(62) - random.randrange(20)
            firmness = random.randrange(38, 96) / 10
            brix = f"{tenths // 10},{tenths % 10}"
            samples.append((len(samples) + 1, delivery[0], brix, firmness, random.choice(GRADES)))
    return samples
