"""An observatory: its telescopes, programmes, targets, nights, observations and the reductions made of them."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "astronomy"
CONVENTIONS = {
    "aperture-mm": "telescope.aperture is in millimetres.",
    "target-types": "target.type is a code: GAL galaxy, STR star, NEB nebula, QSO quasar, AST asteroid.",
    "unknown-magnitude": "target.magnitude is 99.9 where it is unknown.",
    "compact-dates": "night.night_date is text, YYYYMMDD.",
    "cloud-unrecorded": "night.cloud_percent is -1 where the cloud cover was not recorded.",
    "run-status": "observation.status is a code: OK, ABT aborted, WTH lost to weather.",
    "exposure-seconds": "observation.exposure is in seconds.",
    "reduction-versions": "reduction keeps every version of an observation's reduction; joining it repeats rows.",
}
SCHEMA = """CREATE TABLE telescope (
  telescope_id INTEGER PRIMARY KEY,
  name TEXT,
  site TEXT,
  aperture INTEGER,
  first_light INTEGER
);
CREATE TABLE programme (
  programme_id INTEGER PRIMARY KEY,
  title TEXT,
  leader TEXT,
  institute TEXT,
  hours_granted INTEGER
);
CREATE TABLE target (
  target_id INTEGER PRIMARY KEY,
  name TEXT,
  type TEXT,
  constellation TEXT,
  magnitude REAL
);
CREATE TABLE night (
  night_id INTEGER PRIMARY KEY,
  site TEXT,
  night_date TEXT,
  cloud_percent INTEGER,
  observer TEXT
);
CREATE TABLE observation (
  observation_id INTEGER PRIMARY KEY,
  night_id INTEGER,
  telescope_id INTEGER,
  target_id INTEGER,
  programme_id INTEGER,
  exposure INTEGER,
  status TEXT,
  FOREIGN KEY (night_id) REFERENCES night (night_id),
  FOREIGN KEY (telescope_id) REFERENCES telescope (telescope_id),
  FOREIGN KEY (target_id) REFERENCES target (target_id),
  FOREIGN KEY (programme_id) REFERENCES programme (programme_id)
);
CREATE TABLE reduction (
  observation_id INTEGER,
  version INTEGER,
  pipeline TEXT,
  signal_to_noise REAL,
  PRIMARY KEY (observation_id, version),
  FOREIGN KEY (observation_id) REFERENCES observation (observation_id)
);"""

TELESCOPES = [
    ("Aurora", "La Silla", 3580, 1989),
    ("Borealis", "La Silla", 2200, 1984),
    ("Cygnus", "La Palma", 4200, 1987),
    ("Draco", "La Palma", 1200, 2001),
    ("Equinox", "Paranal", 8200, 1999),
    ("Fornax", "Paranal", 1800, 2006),
    ("Gemma", "Calar Alto", 3500, 1984),
    ("Halo", "Calar Alto", 800, 1975),
]
INSTITUTES = ["Leiden", "Heidelberg", "Padova", "Toulouse", "Granada", "Uppsala"]
LEADERS = [
    "Okafor",
    "Lindqvist",
    "Moretti",
    "Fernandez",
    "Dupont",
    "Brandt",
    "Nakamura",
    "Sousa",
    "Petrov",
    "Jansen",
    "Akhtar",
    "Novotny",
]
SUBJECTS = ["Dwarf galaxies", "Exoplanet transits", "Quasar variability", "Planetary nebulae", "Near-Earth asteroids"]
SUBJECTS += ["Star clusters", "Supernova hosts", "Stellar rotation", "Galaxy mergers", "Lensed quasars"]
CONSTELLATIONS = [
    "Andromeda",
    "Aquila",
    "Carina",
    "Cetus",
    "Draco",
    "Hydra",
    "Leo",
    "Lyra",
    "Orion",
    "Pegasus",
    "Perseus",
    "Virgo",
]
OBSERVERS = ["A. Ruiz", "B. Holm", "C. Amari", "D. Vega", "E. Sand", "F. Olsen", "G. Marek"]
KINDS = ["GAL", "GAL", "STR", "STR", "STR", "NEB", "QSO", "AST"]
PREFIX = {"GAL": "NGC", "STR": "HD", "NEB": "Sh2", "QSO": "PKS", "AST": "MP"}


def programmes(random: Random) -> list[tuple[object, ...]]:
    """Programmes of observation with their leaders and granted hours."""
    table: list[tuple[object, ...]] = []
    for number in range(1, 41):
        part = ("I", "II", "III", "IV")[(number - 1) // len(SUBJECTS)]
        title = f"{SUBJECTS[number % len(SUBJECTS)]} {part}"
        institute = random.choice(INSTITUTES)
        table.append((number, title, random.choice(LEADERS), institute, 10 + 3 * random.randrange(30)))
    return table


def targets(random: Random) -> list[tuple[object, ...]]:
    """Things in the sky; asteroids belong to no constellation for long, so theirs is where they were found."""
    table: list[tuple[object, ...]] = []
    for number in range(1, 301):
        kind = random.choice(KINDS)
        magnitude = 99.9 if random.random() < 0.12 else (400 + random.randrange(1500)) / 100
        table.append((number, f"{PREFIX[kind]} {100 + number * 7}", kind, random.choice(CONSTELLATIONS), magnitude))
    return table


def nights(random: Random) -> list[tuple[object, ...]]:
    """Nights of three years at each site, not all of them used."""
    table: list[tuple[object, ...]] = []
    for site in ("La Silla", "La Palma", "Paranal", "Calar Alto"):
        for offset in range(3 * 365):
            if random.random() < 0.6:
                continue
            day = date(2022, 1, 1) + timedelta(days=offset)
            cloud = -1 if random.random() < 0.1 else random.choice([0, 0, 0, 5, 10, 20, 35, 50, 80, 100])
            text = f"{day.year}{day.month:02d}{day.day:02d}"
            table.append((len(table) + 1, site, text, cloud, random.choice(OBSERVERS)))
    return table


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    yield "telescope", [(number, *telescope) for number, telescope in enumerate(TELESCOPES, 1)]
    yield "programme", programmes(random)
    yield "target", targets(random)
    calendar = nights(random)
    yield "night", calendar
    observations: list[tuple[object, ...]] = []
    reductions: list[tuple[object, ...]] = []
    for night in calendar:
        here = [number for number, telescope in enumerate(TELESCOPES, 1) if telescope[1] == night[1]]
        for _ in range(random.randrange(4)):
            number = len(observations) + 1
            status = random.choice(["OK", "OK", "OK", "OK", "OK", "OK", "ABT", "WTH"])
            exposure = 30 * (2 + random.randrange(random.choice([20, 100, 300])))
            target, programme = 1 + random.randrange(285), 1 + random.randrange(40)
            observations.append((number, night[0], random.choice(here), target, programme, exposure, status))
            if status == "OK":
                noise = 500 + random.randrange(9000)
                for version in range(1, 2 + random.randrange(3)):
                    pipeline = random.choice(["swift", "classic"])
                    reductions.append((number, version, pipeline, (noise + 150 * version) / 100))
    yield "observation", observations
    yield "reduction", reductions
