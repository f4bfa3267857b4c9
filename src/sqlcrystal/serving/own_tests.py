"""A team's own tests and benchmark: questions with the SQL or rows they must give."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from sqlcrystal.bank import Store, Verdict
from sqlcrystal.errors import BankError, DataError, UserError
from sqlcrystal.scoring.verdicts import same_bag
from sqlcrystal.serving.answers import Draft
from sqlcrystal.serving.asking import as_question, draft_answer
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.types import CardStatus, Failure, Row, Rows

QUESTIONS = "questions.jsonl"
"""The file of a benchmark of one's own."""


class OwnTest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test as a file writes it: a question, and the SQL whose rows it must give, or the rows themselves."""

    name: str
    question: str
    sql: str = ""
    rows: tuple[Row, ...] | None = None
    database: str = ""
    ordered: bool = False
    """Whether the order of the rows counts."""


class TestResult(Struct, frozen=True, kw_only=True):
    """The outcome of one test in each arm."""

    name: str
    database: str
    right: bool
    """With memory, as it is served."""
    right_without: bool
    sql: str | None
    why: str = ""
    seconds: float = 0.0

    @property
    def says(self) -> str:
        """Tell what memory did to it: right, fixed, broke or wrong."""
        return {(True, True): "right", (True, False): "fixed", (False, True): "broke", (False, False): "wrong"}[
            self.right, self.right_without
        ]


def read_tests(path: Path) -> list[OwnTest]:
    """Read the tests of a YAML file, or say in one line what is wrong with it."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        tests = msgspec.convert(document, list[OwnTest], strict=False)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}; each test has name, question, and sql or rows") from None
    names = [test.name for test in tests]
    for test in tests:
        if bool(test.sql) == (test.rows is not None):
            raise DataError(f"{path}: test {test.name!r}: give either sql or rows")
        if names.count(test.name) > 1:
            raise DataError(f"{path}: test {test.name!r}: the name is given twice")
    if not tests:
        raise DataError(f"{path}: holds no tests")
    return tests


def run_tests(workspace: Workspace, tests: Iterable[OwnTest], *, choose: Callable[[str], str]) -> list[TestResult]:
    """Ask every test's question with memory and without; nothing is kept of it."""
    return [_run(workspace, test, choose(test.database)) for test in tests]


def _run(workspace: Workspace, test: OwnTest, name: str) -> TestResult:
    wanted = _wanted(workspace, name, test)
    question = as_question(test.question, name)
    drafts = {memory: draft_answer(workspace, question, with_memory=memory) for memory in (True, False)}
    why = {memory: _why(draft, wanted, ordered=test.ordered) for memory, draft in drafts.items()}
    return TestResult(
        name=test.name,
        database=name,
        right=not why[True],
        right_without=not why[False],
        sql=drafts[True].sql,
        why=why[True],
        seconds=round(sum(call.completion.seconds for call in drafts[True].calls), 3),
    )


def _wanted(workspace: Workspace, name: str, test: OwnTest) -> tuple[Row, ...]:
    if test.rows is not None:
        return test.rows
    execution = workspace.open(name).database.execute(test.sql)
    if isinstance(execution, Failure):
        raise UserError(f"test {test.name!r}: its sql does not run ({execution.kind}: {execution.message})")
    return execution.rows


def _why(draft: Draft, wanted: tuple[Row, ...], *, ordered: bool) -> str:
    """Tell why an answer is not what a test wants; nothing when it is."""
    if not isinstance(draft.execution, Rows):
        return f"does not run: {draft.execution.message}" if draft.execution else "the model's reply held no SQL"
    if same_bag(wanted, draft.execution.rows, ordered=ordered):
        return ""
    return f"{len(draft.execution.rows)} rows that are not the {len(wanted)} wanted"


def junit(results: Iterable[TestResult], *, suite: str) -> bytes:
    """Write the results as JUnit XML: a test fails when its answer with memory is wrong."""
    outcomes = list(results)
    counts = {"tests": str(len(outcomes)), "failures": str(sum(not outcome.right for outcome in outcomes))}
    root = ElementTree.Element("testsuite", {"name": suite, "errors": "0", "skipped": "0", **counts})
    for outcome in outcomes:
        attributes: dict[str, Any] = {
            "classname": outcome.database,
            "name": outcome.name,
            "time": f"{outcome.seconds:.3f}",
        }
        case = ElementTree.SubElement(root, "testcase", attributes)
        if not outcome.right:
            failure = ElementTree.SubElement(
                case, "failure", message=f"{outcome.says}: {outcome.why}", type=outcome.says
            )
            failure.text = _printable(outcome.sql or "")
        out = ElementTree.SubElement(case, "system-out")
        out.text = f"without memory: {'right' if outcome.right_without else 'wrong'}"
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _printable(text: str) -> str:
    """Take out the control characters that XML cannot hold."""
    return "".join(character for character in text if character.isprintable() or character in "\n\t")


def make_benchmark(store: Store, folder: Path, *, database: str | None = None) -> int:
    """Write one line for each question whose verdict stands and whose card is served; returns how many."""
    lines: dict[tuple[str, str], bytes] = {}
    for decision in store.decisions.all(database=database):
        standing = store.decisions.standing(decision.answer) if decision.answer else None
        if standing is None or standing.id != decision.id or not decision.card:
            continue
        if decision.verdict not in (Verdict.CONFIRMED, Verdict.CORRECTED):
            continue
        try:
            card = store.bank.get(decision.card)
        except BankError:
            continue  # deleted or forgotten since
        if card.status is CardStatus.ACTIVE:
            entry = {"id": card.id, "database": card.database, "question": card.question.text, "sql": card.sql}
            lines[card.database, card.question.text] = msgspec.json.encode(entry)
    if not lines:
        raise DataError(f"{store.where}: no confirmed answers{f' over {database}' if database else ''} to make one of")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / QUESTIONS).write_bytes(b"\n".join(lines.values()) + b"\n")
    return len(lines)
