"""A mobile operator: subscribers, the plans they were on over time, their calls, invoices and trouble tickets."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "mobile telephony"
CONVENTIONS = {
    "status-codes": "subscribers.status is A active, S suspended, T terminated; invoices.status is PD paid, OP open, "
    "WO written off.",
    "compact-dates": "subscribers.joined is text as YYYYMMDD and invoices.period as YYYYMM.",
    "open-end-9999": "subscriptions.end_date is 9999-12-31 while the subscription is current.",
    "plan-kinds": "plans.kind is PRE for prepaid and PST for postpaid.",
    "unlimited-minus-one": "plans.data_mb and plans.voice_minutes are -1 where the allowance is unlimited.",
    "call-directions": "calls.direction is OUT for outgoing and IN for incoming calls.",
    "duration-seconds": "calls.duration is in seconds.",
    "invoice-cents": "invoices.amount is in euro cents, while plans.monthly_fee is in euros.",
}
SCHEMA = """
CREATE TABLE subscribers (
  subscriber_id INTEGER PRIMARY KEY,
  full_name TEXT,
  birth_year INTEGER,
  city TEXT,
  joined TEXT,
  status TEXT
);
CREATE TABLE plans (
  plan_id INTEGER PRIMARY KEY,
  plan_name TEXT,
  kind TEXT,
  monthly_fee REAL,
  data_mb INTEGER,
  voice_minutes INTEGER
);
CREATE TABLE subscriptions (
  subscription_id INTEGER PRIMARY KEY,
  subscriber_id INTEGER REFERENCES subscribers(subscriber_id),
  plan_id INTEGER REFERENCES plans(plan_id),
  start_date TEXT,
  end_date TEXT
);
CREATE TABLE calls (
  call_id INTEGER PRIMARY KEY,
  subscription_id INTEGER REFERENCES subscriptions(subscription_id),
  started_at TEXT,
  duration INTEGER,
  direction TEXT,
  dropped INTEGER
);
CREATE TABLE invoices (
  invoice_id INTEGER PRIMARY KEY,
  subscriber_id INTEGER REFERENCES subscribers(subscriber_id),
  period TEXT,
  amount INTEGER,
  status TEXT
);
CREATE TABLE tickets (
  ticket_id INTEGER PRIMARY KEY,
  subscriber_id INTEGER REFERENCES subscribers(subscriber_id),
  category TEXT,
  priority INTEGER,
  opened_on TEXT,
  resolved_on TEXT
);
"""

GIVEN = [
    "Ana", "Bruno", "Carla", "Diogo", "Elisa", "Filipe", "Gabriela", "Hugo", "Ines", "Joana", "Luis", "Marta", "Nuno",
    "Olga", "Pedro", "Rita", "Sofia", "Tiago", "Vera", "Xavier",
]  # fmt: skip
FAMILY = [
    "Almeida", "Barros", "Cardoso", "Duarte", "Esteves", "Faria", "Gomes", "Henriques", "Lopes", "Machado", "Neves",
    "Oliveira", "Pinto", "Quintela", "Ramos", "Santos", "Teixeira", "Vieira", "Serra", "Moura", "Leal",
]  # fmt: skip
CITIES = ["Lisboa", "Lisboa", "Lisboa", "Porto", "Porto", "Braga", "Coimbra", "Faro", "Aveiro", "Setubal"]
PLANS: list[tuple[object, ...]] = [
    (1, "Start", "PRE", 7.5, 1000, 60),
    (2, "Start Plus", "PRE", 12.0, 4000, 200),
    (3, "Talk", "PRE", 9.9, 500, -1),
    (4, "Surf", "PRE", 16.5, 15000, 100),
    (5, "Family Basic", "PST", 24.9, 10000, 500),
    (6, "Family Max", "PST", 49.9, -1, -1),
    (7, "Business S", "PST", 29.0, 12000, -1),
    (8, "Business L", "PST", 62.0, -1, -1),
    (9, "Student", "PRE", 10.9, 8000, 150),
    (10, "Senior", "PST", 13.5, 2000, 1000),
    (11, "Unlimited Data", "PST", 41.5, -1, 300),
    (12, "Traveller", "PST", 36.0, 25000, 400),
    (13, "Night Owl", "PRE", 14.9, -1, 50),
]
FIRST_DAY, LAST_DAY = date(2022, 1, 1), date(2023, 12, 31)
FOREVER = date(9999, 12, 31)


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    names = [f"{given} {family}" for given in GIVEN for family in FAMILY]
    random.shuffle(names)
    people: list[tuple[int, date, str]] = []
    subscribers: list[tuple[object, ...]] = []
    for key, name in enumerate(names, 1):
        joined = date(2017, 3, 1) + timedelta(days=random.randrange(2260))
        status = random.choice(["A", "A", "A", "A", "A", "S", "T", "T"])
        people.append((key, joined, status))
        day = f"{joined.year}{joined.month:02d}{joined.day:02d}"
        subscribers.append((key, name, random.randrange(1941, 2006), random.choice(CITIES), day, status))
    yield "subscribers", subscribers
    yield "plans", PLANS
    subscriptions = _subscriptions(random, people)
    yield (
        "subscriptions",
        [(*subscription[:3], str(subscription[3]), str(subscription[4])) for subscription in subscriptions],
    )
    yield "calls", _calls(random, subscriptions)
    yield "invoices", _invoices(random, people)
    yield "tickets", _tickets(random, len(people))


Subscription = tuple[int, int, int, date, date]


def _subscriptions(random: Random, people: list[tuple[int, date, str]]) -> list[Subscription]:
    subscriptions: list[Subscription] = []
    for person, joined, status in people:
        start, changes = joined, random.randrange(3)
        for change in range(changes + 1):
            last = change == changes
            spell = timedelta(days=30 + random.randrange((LAST_DAY - start).days // 2))
            end = FOREVER if last and status != "T" else min(start + spell, LAST_DAY)
            subscriptions.append((len(subscriptions) + 1, person, random.randrange(1, len(PLANS) + 1), start, end))
            start += spell + timedelta(days=1)
    return subscriptions


def _calls(random: Random, subscriptions: list[Subscription]) -> list[tuple[object, ...]]:
    calls: list[tuple[object, ...]] = []
    while len(calls) < 6000:
        subscription, _person, _plan, start, end = random.choice(subscriptions)
        first, last = max(start, FIRST_DAY), min(end, LAST_DAY)
        if first > last:
            continue
        day = first + timedelta(days=random.randrange((last - first).days + 1))
        moment = f"{day} {random.randrange(6, 24):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}"
        duration = 4 + int(random.random() ** 3 * 2400)
        direction = "OUT" if random.random() < 0.56 else "IN"
        calls.append((len(calls) + 1, subscription, moment, duration, direction, int(random.random() < 0.06)))
    return calls


def _invoices(random: Random, people: list[tuple[int, date, str]]) -> list[tuple[object, ...]]:
    invoices: list[tuple[object, ...]] = []
    for person, joined, _status in people:
        usual = random.randrange(790, 6200)
        for month in range(1, 9):
            if joined < date(2023, month, 1):
                status = random.choice(["PD"] * 16 + ["OP", "OP", "WO"])
                invoices.append(
                    (len(invoices) + 1, person, f"2023{month:02d}", usual + random.randrange(0, 900), status)
                )
    return invoices


def _tickets(random: Random, people: int) -> list[tuple[object, ...]]:
    categories = ["billing", "coverage", "coverage", "roaming", "sim card", "speed", "speed", "speed"]
    tickets: list[tuple[object, ...]] = []
    for key in range(1, 701):
        opened = date(2023, 1, 2) + timedelta(days=random.randrange(360))
        resolved = None if random.random() < 0.12 else str(opened + timedelta(days=random.randrange(0, 30)))
        person = 1 + int(random.random() ** 1.5 * people)
        tickets.append((key, person, random.choice(categories), random.randrange(1, 5), str(opened), resolved))
    return tickets
