"""A German outpatient clinic: its doctors, patients, visits, diagnoses, laboratory results and prescriptions."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "health care"
CONVENTIONS = {
    "visit-status": "visits.status is one letter: C completed, N no-show (missed), X cancelled.",
    "day-first-dates": "patients.birth_date is text written DD.MM.YYYY, unlike the ISO dates of the other tables.",
    "fee-in-cents": "visits.fee is a whole number of euro cents.",
    "pain-unknown": "visits.pain_score runs from 0 to 10; 99 means that nobody asked.",
    "sex-letters": "patients.sex is 'm' for men and 'w' (weiblich) for women, lower case.",
    "insurance-codes": "patients.insurance is GKV (statutory), PKV (private) or SZ (self-paying).",
    "test-codes": "lab_results.test is an abbreviation (GLU, CHOL, CREA, A1C, TSH), flag H (high), L (low) or empty.",
}
SCHEMA = """
CREATE TABLE doctors (
    doctor_id INTEGER PRIMARY KEY,
    name TEXT,
    specialty TEXT,
    hired_on TEXT
);
CREATE TABLE patients (
    patient_id INTEGER PRIMARY KEY,
    first_name TEXT,
    last_name TEXT,
    sex TEXT,
    birth_date TEXT,
    city TEXT,
    insurance TEXT
);
CREATE TABLE visits (
    visit_id INTEGER PRIMARY KEY,
    patient_id INTEGER REFERENCES patients (patient_id),
    doctor_id INTEGER REFERENCES doctors (doctor_id),
    visit_date TEXT,
    status TEXT,
    minutes INTEGER,
    pain_score INTEGER,
    fee INTEGER
);
CREATE TABLE diagnoses (
    visit_id INTEGER REFERENCES visits (visit_id),
    position INTEGER,
    icd_code TEXT,
    description TEXT,
    PRIMARY KEY (visit_id, position)
);
CREATE TABLE lab_results (
    result_id INTEGER PRIMARY KEY,
    visit_id INTEGER REFERENCES visits (visit_id),
    test TEXT,
    value REAL,
    flag TEXT
);
CREATE TABLE prescriptions (
    prescription_id INTEGER PRIMARY KEY,
    visit_id INTEGER REFERENCES visits (visit_id),
    drug TEXT,
    dose_mg INTEGER,
    days INTEGER
);
"""

DOCTORS = [
    ("Anna Brandt", "Cardiology"),
    ("Jonas Keller", "Cardiology"),
    ("Petra Vogel", "Cardiology"),
    ("Sven Albrecht", "Dermatology"),
    ("Miriam Falk", "Dermatology"),
    ("Tobias Ernst", "General Practice"),
    ("Katrin Lorenz", "General Practice"),
    ("Ute Seidel", "General Practice"),
    ("Henrik Paulsen", "General Practice"),
    ("Dilek Aydin", "General Practice"),
    ("Clara Winter", "Neurology"),
    ("Georg Thiele", "Neurology"),
    ("Nadine Krause", "Orthopedics"),
    ("Ralf Bergmann", "Orthopedics"),
    ("Ingrid Hauser", "Orthopedics"),
    ("Lukas Stein", "Orthopedics"),
]
WOMEN = "Anja Birgit Carla Doris Elif Frieda Greta Hanna Ilse Julia Karin Lena Maria Nele Olga Paula Renate Sabine"
MEN = "Arne Bernd Cem David Emil Felix Gustav Hans Ivan Jan Karl Leon Martin Nils Otto Peter Rainer Stefan"
LAST = (
    "Adler Bauer Becker Busch Dietrich Engel Fischer Frank Fuchs Graf Haas Hartmann Hoffmann Horn Jung "
    "Kaiser Klein Koch Kuhn Lange Lehmann Maier Martens Meyer Neumann Otte Peters Pohl Richter Roth Sauer "
    "Schmidt Scholz Schulz Simon Sommer Stark Vogt Wagner Weber Werner Wolff Yilmaz Ziegler"
)
CITIES = ["Hamburg"] * 5 + ["Kiel"] * 3 + ["Bremen"] * 2 + ["Rostock", "Schwerin", "Stade"]
INSURANCE = ["GKV"] * 14 + ["PKV"] * 5 + ["SZ"]
ILLNESSES = {
    "Cardiology": [("I10", "Hypertension"), ("I48", "Atrial fibrillation"), ("I50", "Heart failure")],
    "Dermatology": [("L20", "Atopic dermatitis"), ("L40", "Psoriasis"), ("L70", "Acne")],
    "General Practice": [
        ("E11", "Type 2 diabetes"),
        ("I10", "Hypertension"),
        ("J06", "Common cold"),
        ("J45", "Asthma"),
    ],
    "Neurology": [("G43", "Migraine"), ("G40", "Epilepsy"), ("G20", "Parkinson disease")],
    "Orthopedics": [("M54", "Back pain"), ("M17", "Knee arthrosis"), ("S93", "Ankle sprain")],
}
ALSO = [("E66", "Obesity"), ("F32", "Depression"), ("E11", "Type 2 diabetes"), ("E78", "High cholesterol")]
DRUGS = {
    "Cardiology": [("Bisoprolol", (2, 5, 10)), ("Ramipril", (2, 5, 10)), ("Apixaban", (2, 5))],
    "Dermatology": [("Prednisolone", (5, 10, 20)), ("Doxycycline", (50, 100))],
    "General Practice": [("Metformin", (500, 850, 1000)), ("Ramipril", (2, 5)), ("Ibuprofen", (200, 400, 600))],
    "Neurology": [("Sumatriptan", (50, 100)), ("Levetiracetam", (250, 500, 1000))],
    "Orthopedics": [("Ibuprofen", (400, 600, 800)), ("Diclofenac", (50, 75)), ("Tramadol", (50, 100))],
}
TESTS = {
    "GLU": (70, 140, 110),
    "CHOL": (140, 290, 215),
    "CREA": (50, 130, 105),
    "A1C": (45, 110, 65),
    "TSH": (3, 60, 42),
}
BASE_FEE = {"Cardiology": 9500, "Dermatology": 6400, "General Practice": 3800, "Neurology": 11000, "Orthopedics": 7200}


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    yield (
        "doctors",
        [
            (number, name, specialty, _day(random, date(2004, 1, 1), 6900).isoformat())
            for number, (name, specialty) in enumerate(DOCTORS, 1)
        ],
    )
    yield "patients", [_patient(random, number) for number in range(1, 421)]
    visits = [_visit(random, number) for number in range(1, 2601)]
    yield "visits", visits
    completed = [visit for visit in visits if visit[4] == "C"]
    yield "diagnoses", [row for visit in completed for row in _diagnoses(random, visit)]
    yield "lab_results", _numbered(row for visit in completed for row in _lab_results(random, visit))
    yield "prescriptions", _numbered(row for visit in completed for row in _prescriptions(random, visit))


def _numbered(lines: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [(number, *line) for number, line in enumerate(lines, 1)]


def _day(random: Random, first: date, span: int) -> date:
    return first + timedelta(days=random.randrange(span))


def _specialty(visit: tuple[object, ...]) -> str:
    return DOCTORS[int(str(visit[2])) - 1][1]


def _patient(random: Random, number: int) -> tuple[object, ...]:
    woman = random.random() < 0.54
    born = _day(random, date(1932, 1, 1), 27400)
    return (
        number,
        random.choice((WOMEN if woman else MEN).split()),
        random.choice(LAST.split()),
        "w" if woman else "m",
        f"{born.day:02d}.{born.month:02d}.{born.year}",
        random.choice(CITIES),
        random.choice(INSURANCE),
    )


def _visit(random: Random, number: int) -> tuple[object, ...]:
    doctor = min(random.randrange(len(DOCTORS)), random.randrange(len(DOCTORS) + 6))
    patient = 1 + random.randrange(420)
    day = _day(random, date(2022, 1, 1), 1096).isoformat()
    draw = random.random()
    if draw < 0.11:
        return (number, patient, doctor + 1, day, "X", None, 99, 0)
    if draw < 0.20:
        return (number, patient, doctor + 1, day, "N", None, 99, 2500)
    minutes = 5 * (1 + random.randrange(12))
    pain = 99 if random.random() < 0.18 else min(random.randrange(11), random.randrange(13))
    fee = BASE_FEE[DOCTORS[doctor][1]] + minutes * 210 + 5 * random.randrange(400)
    return (number, patient, doctor + 1, day, "C", minutes, pain, fee)


def _diagnoses(random: Random, visit: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    yield (visit[0], 1, *random.choice(ILLNESSES[_specialty(visit)]))
    if random.random() < 0.3:
        yield (visit[0], 2, *random.choice(ALSO))


def _lab_results(random: Random, visit: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    if random.random() < 0.35:
        for test, (low, high, limit) in TESTS.items():
            if random.random() < 0.5:
                value = low + random.randrange(high - low + 1)
                flag = "H" if value > limit else "L" if value < low + (high - low) // 10 else ""
                yield (visit[0], test, value / 10 if test in {"A1C", "TSH"} else float(value), flag)


def _prescriptions(random: Random, visit: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    drugs = DRUGS[_specialty(visit)]
    first = random.randrange(len(drugs))
    for offset in range(min(random.randrange(3), 2)):
        drug, doses = drugs[(first + offset) % len(drugs)]
        yield (visit[0], drug, random.choice(doses), random.choice((7, 10, 14, 30, 90)))
