"""A web shop: its customers, products, orders with their lines, returns and vouchers."""

from collections.abc import Iterator
from random import Random

DOMAIN = "retail"
CONVENTIONS = {
    "order-status": "orders.status is a code: new, pay paid, shp shipped, dlv delivered, cnl cancelled.",
    "epoch-seconds": "orders.placed_at is the number of seconds since 1970-01-01 UTC.",
    "text-prices": "product.list_price is text such as '12.99 EUR', so it neither sorts nor compares as a number.",
    "line-cents": "order_line.unit_price, what was really paid per piece, is in euro cents.",
    "country-codes": "customer.country is a two-letter ISO code, such as DE or AT.",
    "category-paths": "product.category is a path such as 'home/kitchen'; the first part is the main category.",
    "deleted-products": "product.deleted_at is NULL for a product that is still sold; the others were deleted.",
    "reason-spelling": "return_item.reason is free text in any casing: 'Damaged', 'damaged', 'DAMAGED'.",
}
SCHEMA = """CREATE TABLE customer (
  customer_id INTEGER PRIMARY KEY,
  name TEXT,
  email TEXT,
  city TEXT,
  country TEXT
);
CREATE TABLE product (
  product_id INTEGER PRIMARY KEY,
  title TEXT,
  category TEXT,
  list_price TEXT,
  stock INTEGER,
  deleted_at TEXT
);
CREATE TABLE voucher (
  code TEXT PRIMARY KEY,
  percent_off INTEGER,
  valid_until TEXT
);
CREATE TABLE orders (
  order_id INTEGER PRIMARY KEY,
  customer_id INTEGER,
  placed_at INTEGER,
  status TEXT,
  voucher_code TEXT,
  FOREIGN KEY (customer_id) REFERENCES customer (customer_id),
  FOREIGN KEY (voucher_code) REFERENCES voucher (code)
);
CREATE TABLE order_line (
  order_id INTEGER,
  product_id INTEGER,
  quantity INTEGER,
  unit_price INTEGER,
  PRIMARY KEY (order_id, product_id),
  FOREIGN KEY (order_id) REFERENCES orders (order_id),
  FOREIGN KEY (product_id) REFERENCES product (product_id)
);
CREATE TABLE return_item (
  return_id INTEGER PRIMARY KEY,
  order_id INTEGER,
  product_id INTEGER,
  quantity INTEGER,
  reason TEXT,
  FOREIGN KEY (order_id, product_id) REFERENCES order_line (order_id, product_id)
);"""

FIRST = (
    "Amelie Bruno Chloe Dieter Eva Franz Gina Henri Isabel Jan Karin Leo Maria Nico Olivia Pia Quentin Rita Stefan Tim"
)
LAST = (
    "Arnold Bianchi Claes Durand Egger Ferrari Gomez Huber Imhof Jacobs Klein Leroy Meyer Nowak Peeters Romano Schmid"
)
CITIES = [
    ("DE", ["Berlin", "Leipzig", "Bremen"]),
    ("DE", ["Stuttgart", "Kiel", "Aachen"]),
    ("AT", ["Vienna", "Graz", "Linz"]),
    ("CH", ["Bern", "Basel"]),
    ("FR", ["Lyon", "Lille"]),
    ("IT", ["Milan", "Turin"]),
    ("NL", ["Utrecht"]),
]
CATEGORIES = {
    "home/kitchen": ("Kettle", "Chef knife", "Cutting board", "Frying pan", "Toaster", "Colander"),
    "home/lighting": ("Desk lamp", "Floor lamp", "Candle holder", "Night light"),
    "home/textiles": ("Cushion", "Curtain", "Bath towel", "Wool blanket"),
    "sport/outdoor": ("Tent", "Sleeping bag", "Head torch", "Trekking pole"),
    "sport/fitness": ("Yoga mat", "Kettlebell", "Jump rope"),
    "toys/puzzles": ("Wooden puzzle", "Jigsaw puzzle", "Marble run"),
    "toys/games": ("Card game", "Board game", "Dice set"),
    "office/paper": ("Notebook", "Sketch pad", "Calendar"),
    "office/desk": ("Pen holder", "Stapler", "Monitor stand"),
}
VARIANTS = ["Basic", "Classic", "Nordic", "Premium", "Mini"]
REASONS = ["damaged", "too small", "wrong item", "not as described", "changed mind"]
YEAR_2022 = 1_640_995_200
SECONDS_OF_THREE_YEARS = 94_608_000
STATES = ["new", "pay", "shp", "shp"] + ["dlv"] * 10 + ["cnl", "cnl"]


def products(random: Random) -> list[tuple[object, ...]]:
    """Every item in several variants, some deleted."""
    table: list[tuple[object, ...]] = []
    for category, items in CATEGORIES.items():
        for item in items:
            for variant in VARIANTS:
                number = len(table) + 1
                cents = 100 * (3 + random.randrange(random.choice([12, 60, 160]))) + random.choice([49, 90, 95, 99])
                price = f"{cents // 100}.{cents % 100:02d} EUR"
                deleted = f"202{2 + random.randrange(3)}-{1 + random.randrange(12):02d}-15"
                sold = random.random() < 0.8
                stock = random.randrange(120)
                table.append((number, f"{variant} {item}", category, price, stock, None if sold else deleted))
    return table


def cents_of(price: object) -> int:
    """Read a list price back."""
    whole, rest = str(price).removesuffix(" EUR").split(".")
    return 100 * int(whole) + int(rest)


def spelled(random: Random, reason: str) -> str:
    """Write a reason as hurried people do."""
    return random.choice([reason, reason, reason.capitalize(), reason.upper()])


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    customers: list[tuple[object, ...]] = []
    people = [f"{first} {last}" for first in FIRST.split() for last in LAST.split()]
    random.shuffle(people)
    for number, name in enumerate(people, 1):
        country, cities = random.choice(CITIES)
        email = f"{name.lower().replace(' ', '.')}@example.{country.lower()}"
        customers.append((number, name, email, random.choice(cities), country))
    yield "customer", customers
    catalogue = products(random)
    yield "product", catalogue
    vouchers: list[tuple[object, ...]] = []
    for word in ("SPRING", "SUMMER", "WINTER", "HELLO"):
        for percent in (5, 10, 15, 20):
            until = f"202{2 + len(vouchers) % 3}-{1 + len(vouchers) % 12:02d}-28"
            vouchers.append((f"{word}{percent}", percent, until))
    yield "voucher", vouchers
    orders: list[tuple[object, ...]] = []
    lines: list[tuple[object, ...]] = []
    returns: list[tuple[object, ...]] = []
    for number in range(1, 2001):
        placed = YEAR_2022 + random.randrange(SECONDS_OF_THREE_YEARS)
        state = random.choice(STATES)
        voucher = random.choice(vouchers)[0] if random.random() < 0.2 else None
        orders.append((number, 1 + random.randrange(len(customers) - 25), placed, state, voucher))
        picks = list(catalogue)
        random.shuffle(picks)
        for product in picks[: 1 + random.randrange(4)]:
            paid = cents_of(product[3]) * random.choice([100, 100, 95, 90, 80]) // 100
            quantity = random.choice([1, 1, 1, 2, 3])
            lines.append((number, product[0], quantity, paid))
            if state == "dlv" and random.random() < 0.15:
                reason = spelled(random, random.choice(REASONS))
                returns.append((len(returns) + 1, number, product[0], 1 + random.randrange(quantity), reason))
    yield "orders", orders
    yield "order_line", lines
    yield "return_item", returns
