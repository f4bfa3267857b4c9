"""The paper's worked example: one episode, one ladder of cards, each pinned word for word."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sqlcrystal.admission.verifiers import Oracle
from sqlcrystal.assembly import WRITERS, writer
from sqlcrystal.databases import open_database
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.types import (
    Admitted,
    Attempt,
    Call,
    Completion,
    Episode,
    Message,
    Probe,
    Question,
    Round,
    Rows,
    Sampling,
)

QUESTION = Question(
    id="california_schools-42",
    database="california_schools",
    text="How many active and closed District Community Day Schools are there in the county of Alpine?",
)
WRONG = (
    "SELECT COUNT(*) FROM schools WHERE County = 'Alpine' AND (StatusType='Active' OR StatusType='Closed') "
    "AND (GSoffered LIKE '%Community Day School%' OR GSserved LIKE '%Community Day School%')"
)
REPAIRED = (
    "SELECT COUNT(*) FROM schools WHERE County = 'Alpine' AND (StatusType='Active' OR StatusType='Closed') "
    "AND (School LIKE '%Community Day%' OR DOCType LIKE '%Community Day%')"
)
PROBES = (
    Probe(
        "SELECT DISTINCT StatusType, COUNT(*) FROM schools WHERE County='Alpine' GROUP BY StatusType",
        Rows(("StatusType", "COUNT(*)"), (("Active", 5), ("Closed", 11), ("Merged", 1))),
    ),
    Probe(
        "SELECT School, GSoffered, GSserved FROM schools WHERE County='Alpine' LIMIT 20",
        Rows(("School", "GSoffered", "GSserved"), (("Alpine County Community Day", "K-12", None),)),
    ),
)
LESSON = (
    "school-type classifications are often stored in the school name or document-type fields, not grade-span columns."
)
WHEN = "the target school type is identified by name patterns in 'School'/'DOCType', not grade-span columns."
CAPSULE = f"""\
```json
{{"trigger": "Question asks for 'Community Day Schools' but initial SQL filters on 'GSoffered'/'GSserved'.",
 "applicability": "{WHEN}",
 "negative_guard": "the type is defined by grade ranges in 'GSoffered'/'GSserved', or the schema lacks those columns.",
 "lesson": "{LESSON}"}}
```"""


def call(purpose: str, reply: str) -> Call:
    asked = (Message("user", "…"),)
    return Call(purpose=purpose, messages=asked, sampling=Sampling(), completion=Completion(text=reply))


EPISODE = Episode(
    attempt=Attempt(question=QUESTION, calls=(call("solve", f"```sql\n{WRONG}\n```"),), sql=WRONG),
    source="T3",
    sql=REPAIRED,
    rounds=(
        Round(
            calls=(
                call("probe", "\n".join(f"```sql\n{probe.sql}\n```" for probe in PROBES)),
                call("revise", f"The label is in School.\n```sql\n{REPAIRED}\n```"),
            ),
            sql=REPAIRED,
            execution=Rows(("COUNT(*)",), ((2,),)),
            probes=PROBES,
            accepted=True,
        ),
    ),
)

W2_BODY = """\
Q: How many active and closed District Community Day Schools are there in the county of Alpine?
- Wrong: ...(GSoffered LIKE '%Community Day School%' OR GSserved LIKE '%Community Day School%')
- Fixed: ...(School LIKE '%Community Day%' OR DOCType LIKE '%Community Day%')
- Clause: WHERE"""
W3 = f"Past repair (failure mode: value-literal, column-ref):\n{W2_BODY}"

CARDS = {
    "W0": f"""\
Q: How many active and closed District Community Day Schools are there in the county of Alpine?
```sql
{REPAIRED}
```""",
    "W1": f"""\
Past repair trace:
Q: How many active and closed District Community Day Schools are there in the county of Alpine?
- First attempt:
```sql
{WRONG}
```
- Round 1 (accepted):
```sql
SELECT DISTINCT StatusType, COUNT(*) FROM schools WHERE County='Alpine' GROUP BY StatusType
```
```sql
SELECT School, GSoffered, GSserved FROM schools WHERE County='Alpine' LIMIT 20
```
SELECT DISTINCT StatusType, COUNT(*) FROM schools WHERE County='Alpine' GROUP BY StatusType
  -> Active|5  Closed|11  Merged|1
SELECT School, GSoffered, GSserved FROM schools WHERE County='Alpine' LIMIT 20
  -> Alpine County Community Day|K-12|NULL
The label is in School.
```sql
{REPAIRED}
```
  -> 2
- Final SQL:
```sql
{REPAIRED}
```""",
    "W2": f"Past repair:\n{W2_BODY}",
    "W3": W3,
    "W3+A": f"{W3}\n- Final SQL:\n```sql\n{REPAIRED}\n```",
    "W4": f"""\
{W3}
- Guard: Apply only when filtering on this column; verify the literal actually exists in the column first.""",
    "W5": f"""\
{W3}
- Trigger: Question asks for 'Community Day Schools' but initial SQL filters on 'GSoffered'/'GSserved'.
- Apply-when: {WHEN}
- Do-NOT-apply-when: the type is defined by grade ranges in 'GSoffered'/'GSserved', or the schema lacks those columns.
- Lesson: {LESSON}""",
    "W5-lesson": f"- Lesson: {LESSON}",
    "W0-values": (
        "County: 'Alpine'\nSchool: '%Community Day%'\nDOCType: '%Community Day%'\n"
        "StatusType: 'Active'\nStatusType: 'Closed'"
    ),
    "W0-joins": "(none)",
    "W0-names": "Tables: schools\nColumns: County, DOCType, School, StatusType",
    "W0-skeleton": ("```sql\nSELECT COUNT(*) FROM _ WHERE _ = ? AND (_ = ? OR _ = ?) AND (_ LIKE ? OR _ LIKE ?)\n```"),
    "W0-question": "Q: How many active and closed District Community Day Schools are there in the county of Alpine?",
    "W0-placebo": (
        "Q: Which acorn has scarlet falcon and ivory trumpet and amber glacier and ochre harbour and amber anchor?\n"
        "```sql\nSELECT kettle FROM puppet WHERE marble = 'scarlet' AND falcon = 'teal' AND tunnel = 'scarlet'"
        " AND marble = 'crimson' AND kettle = 'ivory' AND marble = 'teal' AND bonnet = 'crimson'\n```"
    ),
}


@pytest.fixture(scope="module")
def california(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """As much of BIRD's database as the example leans on; `School Name` and `invoices` are not in the episode."""
    path: Path = tmp_path_factory.mktemp("california") / "california_schools.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE schools (CDSCode TEXT, County TEXT, StatusType TEXT, School TEXT, DOCType TEXT, "
            "GSoffered TEXT, GSserved TEXT)"
        )
        connection.execute("CREATE TABLE frpm (`School Name` TEXT, invoices TEXT)")
        connection.execute("INSERT INTO frpm VALUES ('FAME Public Charter', 'overdue')")
        connection.execute("CREATE TABLE `order` (`group` TEXT, flag TEXT)")
        connection.execute("INSERT INTO `order` VALUES ('wholesale', 'Y')")
    connection.close()
    database = open_database(str(path), name="california_schools")
    yield database
    database.close()


def admitted(episode: Episode = EPISODE) -> Admitted:
    verdict = Oracle(lambda question, sql: True).verify(episode)
    assert isinstance(verdict, Admitted)
    return verdict


def test_the_example_covers_every_format() -> None:
    assert CARDS.keys() == WRITERS.keys()


@pytest.mark.parametrize("name", CARDS)
def test_the_worked_example_is_written_as_in_the_paper(name: str, california: Database) -> None:
    card = writer(name, database=california, model=ScriptedModel([CAPSULE])).write(admitted()).card
    assert card.text == CARDS[name]
    assert (card.writer, card.source, card.sql) == (name, "T3", REPAIRED)


def test_a_capsule_field_that_strays_from_the_episode_is_blanked(california: Database) -> None:
    strayed = CAPSULE.replace("name patterns in 'School'", "name patterns in 'SchoolKind'")
    card = writer("W5", database=california, model=ScriptedModel([strayed])).write(admitted()).card
    assert "Apply-when" not in card.text
    assert card.text.count("\n- ") == CARDS["W5"].count("\n- ") - 1


@pytest.mark.parametrize(
    "stray",
    [
        "use the invoices table",
        "see FAME Public Charter",
        "only overdue ones",
        "look at frpms",  # a table's plural
        "read School Name first",  # a name of several words
        "only wholesale ones",  # a value of a column and a table that are called by words of SQL
        "the flag is Y",
        "it counts where it says Y",  # a value of one letter
    ],
)
def test_a_field_with_a_plain_word_that_the_database_knows_and_the_episode_does_not_is_blanked(
    stray: str, california: Database
) -> None:
    strayed = CAPSULE.replace("the type is defined by grade ranges", stray)
    card = writer("W5", database=california, model=ScriptedModel([strayed])).write(admitted()).card
    assert "Do-NOT-apply-when" not in card.text
    assert card.text.count("\n- ") == CARDS["W5"].count("\n- ") - 1


@pytest.mark.parametrize("name", CARDS)
def test_the_same_episode_is_the_same_card_and_another_sql_another(name: str, california: Database) -> None:
    def id_of(episode: Episode) -> str:
        return writer(name, database=california, model=ScriptedModel([CAPSULE])).write(admitted(episode)).card.id

    assert id_of(EPISODE) == id_of(EPISODE)
    assert id_of(EPISODE) != id_of(replace(EPISODE, sql="SELECT 1"))
