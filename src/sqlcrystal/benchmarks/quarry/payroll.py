"""Payroll of several companies: their staff, contracts as they changed, timesheets, pay runs and payslips."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

DOMAIN = "payroll"
CONVENTIONS = {
    "contract-history": "contract keeps every version of a contract; the current one has valid_to = '2999-12-31'.",
    "cents": "contract.monthly_salary and payslip.gross, tax and net are in euro cents.",
    "staff-status": "employee.status is one letter: A active, L on leave, T terminated.",
    "departments": "employee.department is a code: FIN finance, HR human resources, OPS operations, IT, SAL sales.",
    "period-text": "pay_run.period is text, YYYYMM.",
    "void-runs": "pay_run.is_void is Y for a run that was voided, N otherwise; its payslips do not count.",
    "comma-hours": "timesheet.hours is text with a decimal comma, such as 7,5.",
    "absence-codes": "timesheet.kind is one letter: W work, S sick, V vacation.",
}
SCHEMA = """CREATE TABLE company (
  company_id INTEGER PRIMARY KEY,
  name TEXT,
  city TEXT,
  founded_year INTEGER
);
CREATE TABLE employee (
  employee_id INTEGER PRIMARY KEY,
  company_id INTEGER,
  first_name TEXT,
  last_name TEXT,
  birth_date TEXT,
  department TEXT,
  status TEXT,
  FOREIGN KEY (company_id) REFERENCES company (company_id)
);
CREATE TABLE contract (
  contract_id INTEGER PRIMARY KEY,
  employee_id INTEGER,
  valid_from TEXT,
  valid_to TEXT,
  job_title TEXT,
  monthly_salary INTEGER,
  weekly_hours INTEGER,
  FOREIGN KEY (employee_id) REFERENCES employee (employee_id)
);
CREATE TABLE timesheet (
  employee_id INTEGER,
  work_date TEXT,
  kind TEXT,
  hours TEXT,
  PRIMARY KEY (employee_id, work_date),
  FOREIGN KEY (employee_id) REFERENCES employee (employee_id)
);
CREATE TABLE pay_run (
  run_id INTEGER PRIMARY KEY,
  company_id INTEGER,
  period TEXT,
  paid_on TEXT,
  is_void TEXT,
  FOREIGN KEY (company_id) REFERENCES company (company_id)
);
CREATE TABLE payslip (
  run_id INTEGER,
  employee_id INTEGER,
  gross INTEGER,
  tax INTEGER,
  net INTEGER,
  PRIMARY KEY (run_id, employee_id),
  FOREIGN KEY (run_id) REFERENCES pay_run (run_id),
  FOREIGN KEY (employee_id) REFERENCES employee (employee_id)
);"""

COMPANIES = [
    ("Nordwind Logistics", "Hamburg", 1987),
    ("Alpenblick Foods", "Munich", 1962),
    ("Rheintal Software", "Cologne", 2004),
    ("Seeblick Hotels", "Constance", 1975),
    ("Havel Instruments", "Berlin", 1991),
    ("Elbe Printing", "Dresden", 1958),
]
FIRST = (
    "Aylin Bernd Clara Dario Emma Felix Gisela Hakan Irina Jakob Klara Lukas Mina Noah Petra Ralf Sofia Timo Ute Yusuf"
)
LAST = (
    "Albrecht Becker Celik Demir Engel Fischer Gruber Hofmann Illing Jung Keller Lorenz Maier Neumann Otto Pohl "
    "Richter Schulz Thiel Ulrich Voss Winkler Zander Busch Krause"
)
TITLES = {"FIN": "accountant", "HR": "recruiter", "OPS": "dispatcher", "IT": "developer", "SAL": "sales agent"}
CODES = ["FIN", "HR", "OPS", "OPS", "OPS", "IT", "IT", "SAL", "SAL"]
OPEN_END = "2999-12-31"


def contracts_of(random: Random, employee: int, department: str, status: str) -> list[tuple[object, ...]]:
    """The versions of one contract: each raise closes one and opens the next."""
    starts = [date(2014 + random.randrange(8), 1 + random.randrange(12), 1)]
    while random.random() < 0.55 and starts[-1].year < 2023:
        starts.append(date(starts[-1].year + 1 + random.randrange(2), 1 + random.randrange(12), 1))
    salary = 240_000 + 5_000 * random.randrange(40) + 100 * employee
    weekly = random.choice([40, 40, 40, 38, 30, 20])
    versions: list[tuple[object, ...]] = []
    for number, start in enumerate(starts):
        last = number == len(starts) - 1
        end = (OPEN_END if status != "T" else "2023-12-31") if last else str(starts[number + 1] - timedelta(days=1))
        senior = "senior " if number >= 2 else ""
        versions.append((employee, str(start), end, senior + TITLES[department], salary, weekly))
        salary += 5_000 * (2 + random.randrange(6))
        if random.random() < 0.2:
            weekly = random.choice([40, 30, 20])
    return versions


def timesheets(random: Random, staff: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Days booked in spring 2024 by those who were not terminated."""
    table: list[tuple[object, ...]] = []
    for person in staff:
        if person[6] == "T":
            continue
        for offset in range(0, 90, 2):
            day = date(2024, 3, 1) + timedelta(days=offset)
            if day.weekday() > 4 or random.random() < 0.1:
                continue
            kind = random.choice(["W"] * 16 + ["S", "V", "V"])
            quarters = 32 if kind != "W" else 16 + random.randrange(26)
            whole, rest = divmod(quarters * 25, 100)
            hours = f"{whole},{rest:02d}".rstrip("0").rstrip(",") if rest else str(whole)
            table.append((person[0], str(day), kind, hours))
    return table


def pay(
    random: Random, staff: list[tuple[object, ...]], salaries: dict[object, int]
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """A run per company and month of 2023 and early 2024; a voided run is followed by a repeated one."""
    runs: list[tuple[object, ...]] = []
    slips: list[tuple[object, ...]] = []
    for index in range(15):
        year, month = 2023 + index // 12, index % 12 + 1
        for company in range(1, len(COMPANIES) + 1):
            voids = ["Y", "N"] if random.random() < 0.15 else ["N"]
            for void in voids:
                run = len(runs) + 1
                paid = date(year, month, 25 + random.randrange(4))
                runs.append((run, company, f"{year}{month:02d}", str(paid), void))
                for person in staff:
                    if person[1] != company or (person[6] == "T" and year == 2024):
                        continue
                    gross = salaries[person[0]] + 1_000 * random.randrange(30)
                    tax = gross * (18 + random.randrange(12)) // 100
                    slips.append((run, person[0], gross, tax, gross - tax))
    return runs, slips


def rows(random: Random) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each table's name with its rows, parents first."""
    first, last = FIRST.split(), LAST.split()
    pairs = [(given_name, family_name) for given_name in first for family_name in last]
    random.shuffle(pairs)
    staff: list[tuple[object, ...]] = []
    contracts: list[tuple[object, ...]] = []
    salaries: dict[object, int] = {}
    for number in range(1, 181):
        company = random.choice([1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 5, 5, 6])
        born = date(1960, 1, 1) + timedelta(days=random.randrange(15_000))
        department = random.choice(CODES)
        status = random.choice("AAAAAALTT")
        staff.append((number, company, *pairs[number], str(born), department, status))
        for version in contracts_of(random, number, department, status):
            contracts.append((len(contracts) + 1, *version))
            salaries[number] = int(str(version[4]))
    yield "company", [(number, *company) for number, company in enumerate(COMPANIES, 1)]
    yield "employee", staff
    yield "contract", contracts
    yield "timesheet", timesheets(random, staff)
    runs, slips = pay(random, staff, salaries)
    yield "pay_run", runs
    yield "payslip", slips
