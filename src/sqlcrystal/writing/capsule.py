"""W5 and W5-lesson: a summary distilled by the model, behind the consistency fence."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import ClassVar, Self

import msgspec
from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import spelled_layout
from sqlcrystal.databases.parsing import grammar
from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.types import Call, Episode, Message, Rows, Sampling
from sqlcrystal.writing.card import one_line, render_probes
from sqlcrystal.writing.diff_writers import DiffMode

# ── the words by which a database is known ───────────────────────────────────────────────────────────────────────────

VALUES_OF_A_COLUMN = 500
SECONDS_OF_A_LOOK = 2.0
SHORTEST_WORD, LONGEST_VALUE = 3, 60
SENTENCE = re.compile(r"(?<=[.!?;:])\s+")


class Lexicon(Struct, frozen=True):
    """The words that a text may mention: plain ones in any case, the rest as it is spelled."""

    words: frozenset[str] = frozenset()
    """In lower case: names, and values of three letters or more."""
    tables: frozenset[str] = frozenset()
    """In lower case: of a table the plural is a mention, too."""
    phrases: frozenset[str] = frozenset()
    """Names and values of several words: "the school name" does not mention `School Name`."""
    letters: frozenset[str] = frozenset()
    """Values of one capital letter, such as the Y of a flag; the first word of a sentence is none."""

    def mentioned(self, text: str) -> list[str]:
        """Find the words, phrases and letters of a text that the database knows, as it knows them."""
        plain = " ".join(text.split())
        spelled = re.findall(r"\w+", plain)
        lower = [word.lower() for word in spelled]
        later = [word for sentence in SENTENCE.split(plain) for word in re.findall(r"\w+", sentence)[1:]]
        return [
            *(word for word in lower if word in self.words),
            *(word.removesuffix("s") for word in lower if word.endswith("s") and word.removesuffix("s") in self.tables),
            *(word for word in later if word in self.letters),
            *(phrase for phrase in self.phrases if _stands_in(phrase, plain)),
        ]


def lexicon(database: Database) -> Lexicon:
    """Collect names and values of a database; of a column with very many values, the first ones."""
    layout = spelled_layout(database.schema(), database.dialect)
    names = {*layout, *(column for columns in layout.values() for column in columns)}
    values = {value for table in layout for column in layout[table] for value in _texts_of(database, table, column)}
    words = _lower([*names, *(value for value in values if len(value) >= SHORTEST_WORD)])
    return Lexicon(
        words=frozenset(filter(_is_word, words)),
        tables=frozenset(filter(_is_word, _lower(layout))),
        phrases=frozenset(text for text in {*names, *values} if not _is_word(text)),
        letters=frozenset(value for value in values if len(value) == 1 and value.isupper()),
    )


def _lower(texts: Iterable[str]) -> Iterator[str]:
    return (text.lower() for text in texts)


def _is_word(text: str) -> bool:
    return re.fullmatch(r"\w+", text) is not None


def _stands_in(phrase: str, text: str) -> bool:
    return phrase in text and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def _texts_of(database: Database, table: str, column: str) -> Iterator[str]:
    """Find the texts in a column that are short enough to be quoted."""
    # Quoted as they are spelled: a table may be called `order`, a column `School Name`.
    wanted, source = (exp.to_identifier(name, quoted=True) for name in (column, table))
    look = exp.select(wanted).distinct().from_(source).limit(VALUES_OF_A_COLUMN)
    result = database.execute(
        look.sql(grammar(database.dialect)), timeout=SECONDS_OF_A_LOOK, max_rows=VALUES_OF_A_COLUMN
    )
    for row in result.rows if isinstance(result, Rows) else ():
        if isinstance(row[0], str) and any(letter.isalpha() for letter in row[0]):
            value = " ".join(row[0].split())
            if len(value) <= LONGEST_VALUE:
                yield value


# ── the fence ────────────────────────────────────────────────────────────────────────────────────────────────────────

# A name is a word by which the database knows a table, a column or a value, however plain; anything in quotes; words
# with an underscore, a dot, a digit or a capital inside; words in capitals that are not SQL's own; and numbers of two
# digits or more. A plain word that the database does not know is no name: the fence keeps out what looks like a fact,
# not every falsehood.
QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)|\"([^\"]+)\"|`([^`]+)`")
NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+|\w+")
ALLOWED = frozenset({"SQL", "ID", "IDS", "DB", "OK", "NOT", "AND", "OR", "ONLY", "ISO", "UTC"})


def fence(text: str, episode: Episode, known: Lexicon = Lexicon()) -> str:
    """Keep the text, or nothing when it names what the episode never held; `known` is the database's lexicon."""
    held = " ".join(vocabulary(episode).lower().split())
    words = frozenset(re.findall(r"\w+", held))
    return text if all(_is_in_episode(name, held, words) for name in [*names(text), *known.mentioned(text)]) else ""


def names(text: str) -> list[str]:
    """Find the names in a text."""
    quoted = [next(filter(None, match.groups())) for match in QUOTED.finditer(text)]
    bare = QUOTED.sub(" ", text)
    return [*quoted, *(word for word in NAME.findall(bare) if _is_name(word))]


def vocabulary(episode: Episode) -> str:
    """Collect all that the episode holds: question, both queries, every candidate, and the results of the probes."""
    question = episode.question
    texts = [question.text, question.evidence, episode.attempt.sql or "", episode.sql]
    for spent in episode.rounds:
        texts.append(spent.sql or "")
        for execution in [spent.execution, *(probe.execution for probe in spent.probes)]:
            if isinstance(execution, Rows):
                texts.extend(execution.columns)
                texts.extend(str(cell) for row in execution.rows for cell in row)
        texts.extend(probe.sql for probe in spent.probes)
    return "\n".join(texts)


def _is_in_episode(name: str, held: str, words: frozenset[str]) -> bool:
    """Tell whether the episode holds the name as it stands, or every part of a dotted one."""
    plain = " ".join(name.lower().split())
    if re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", held):
        return True
    return "." in plain and all(part in words for part in plain.split("."))


def _is_name(word: str) -> bool:
    if word.upper() in ALLOWED or word.upper() in _sql_words():
        return False
    if word.isdigit():
        return len(word) > 1
    inner = word[1:]
    return (
        "_" in word
        or "." in word
        or any(character.isdigit() for character in word)
        or any(character.isupper() for character in inner)
    )


@cache
def _sql_words() -> frozenset[str]:
    """SQL's own words: keywords and function names."""
    from sqlglot import exp
    from sqlglot.tokens import Tokenizer

    keywords = {part for keyword in Tokenizer.KEYWORDS for part in keyword.split()}
    return frozenset(keywords | set(exp.FUNCTION_BY_NAME))


# ── the capsule ──────────────────────────────────────────────────────────────────────────────────────────────────────

SYSTEM = (
    "You write a compact Text2SQL repair memory. Use only the provided wrong and repaired SQL. "
    "Output JSON only with keys trigger, applicability, negative_guard, lesson."
)
SAMPLING = Sampling(temperature=0.0, max_tokens=2048)


class Capsule(Struct, frozen=True, kw_only=True):
    """The fields that the model distilled; an empty one was not given, or was blanked by the fence."""

    trigger: str = ""
    applicability: str = ""
    negative_guard: str = ""
    lesson: str = ""


LABELS = {
    "trigger": "Trigger",
    "applicability": "Apply-when",
    "negative_guard": "Do-NOT-apply-when",
    "lesson": "Lesson",
}


class CapsuleWriter(DiffMode):
    """W5: the labelled diff, then the capsule's fields that survived the fence."""

    name: ClassVar[str] = "W5"
    header: ClassVar[str] = "[Repair capsules of similar solved questions]"
    summary: ClassVar[str] = "capsule written by the model"
    calls_model: ClassVar[bool] = True

    def __init__(self, database: Database, model: LanguageModel) -> None:
        super().__init__(database)
        self.model = model

    @classmethod
    def of(cls, database: Database, model: LanguageModel) -> Self:
        """Make the writer for one database and model."""
        return cls(database, model)

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """Write the labelled diff and the capsule."""
        capsule, call = distil(self.model, self.database, episode)
        lines = [f"- {label}: {text}" for field, label in LABELS.items() if (text := getattr(capsule, field))]
        return "\n".join([self.render(episode), *lines]), (call,)


class LessonWriter(CapsuleWriter):
    """W5-lesson: the capsule's lesson alone, without any SQL."""

    name: ClassVar[str] = "W5-lesson"
    header: ClassVar[str] = "[Repair lessons of similar solved questions]"
    summary: ClassVar[str] = "the capsule's lesson alone, without SQL"

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """Write the lesson, if it survived the fence."""
        capsule, call = distil(self.model, self.database, episode)
        return f"- Lesson: {capsule.lesson or '(none)'}", (call,)


def distil(model: LanguageModel, database: Database, episode: Episode) -> tuple[Capsule, Call]:
    """Ask for a capsule and fence every field of it."""
    messages = prompt(episode)
    completion = model.chat(messages, sampling=SAMPLING)
    capsule, words = read(completion.text), lexicon(database)
    fenced = Capsule(**{field: fence(one_line(getattr(capsule, field)), episode, words) for field in LABELS})
    return fenced, Call(purpose="capsule", messages=messages, sampling=SAMPLING, completion=completion)


def prompt(episode: Episode) -> tuple[Message, Message]:
    """Write the paper's CAPSULE prompt: question, evidence, wrong SQL, repaired SQL and probe reports."""
    question = episode.question
    probes = [line for spent in episode.rounds for line in render_probes(spent.probes)]
    sections = [
        f"[Question]\n{question.text.strip()}",
        f"[Evidence]\n{question.evidence.strip() or '(none)'}",
        f"[Initial wrong SQL]\n{episode.attempt.sql or '(no SQL)'}",
        f"[Final repaired SQL]\n{episode.sql}",
        "[Probe reports]\n" + ("\n".join(probes) or "(none)"),
    ]
    return Message("system", SYSTEM), Message("user", "\n".join(sections))


def read(reply: str) -> Capsule:
    """Read the capsule in a reply: the first JSON object, fenced or not; a field that is no text is left out."""
    start = reply.find("{")
    for end in [match.end() for match in re.finditer(r"}", reply)][::-1]:
        try:
            document = msgspec.json.decode(reply[start:end].encode()) if start >= 0 else None
        except msgspec.DecodeError:
            continue
        if isinstance(document, dict):
            return Capsule(**{field: _text(document.get(field)) for field in LABELS})
    return Capsule()


def _text(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(str(item) for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""
