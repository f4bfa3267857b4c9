"""A team's databases, model, embedder and store, each opened when it is first needed."""

import re
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from sqlcrystal.bank import FrozenBank
from sqlcrystal.config import DEFAULT_RETRIEVER, DatabaseEntry, TeamFile, is_url, model_table, resolve_secrets
from sqlcrystal.consumption.memory import BankMemory, NoMemory
from sqlcrystal.databases import open_database
from sqlcrystal.databases.engines import FILE_SCHEMES
from sqlcrystal.errors import ConfigError, UserError
from sqlcrystal.pipeline import Memory
from sqlcrystal.protocols import Bank, Database, Embedder, LanguageModel, Retriever
from sqlcrystal.serving.callers import current_user
from sqlcrystal.serving.clock import ClockedDatabase
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.solving.presentation import Presenter
from sqlcrystal.solving.prompt import shared_beginning
from sqlcrystal.types import CardKind, CardStatus

if TYPE_CHECKING:
    from sqlcrystal.bank import DatabaseLocation, Experiment, Store
    from sqlcrystal.telling.words import Glossary


MOST_HEARD = 1_000
"""Questions over databases whose values are never kept that stay in memory, for repairs and corrections."""
ATTEMPTS = 3
"""How often an endpoint is asked while a person waits; a study has more patience."""


class OpenDatabase(NamedTuple):
    """One database at work: opened read-only, with its settings and what its prompts show."""

    name: str
    entry: DatabaseEntry
    database: Database
    presenter: Presenter


class Workspace:
    """Shared by threads; closes what it opened, and leaves alone what it was given."""

    def __init__(self, team: TeamFile, *, model: LanguageModel | None = None, embedder: Embedder | None = None) -> None:
        """Open nothing yet."""
        self.team = team
        self._given_model = model
        self._given_embedder = embedder
        self._lock = RLock()
        self._model: LanguageModel | None = None
        self._embedder: Embedder | None = None
        self._retrievers: SingleFlight[str, Retriever] = SingleFlight()
        self._store: Store | None = None
        self._open_databases: SingleFlight[str, OpenDatabase] = SingleFlight()
        self._opened: list[Database] = []
        self._named_here: dict[str, DatabaseEntry] = {}
        self._remembered: set[str] = set()
        self._heard: dict[tuple[str, str], str] = {}
        self._glossaries: dict[str, tuple[int, Glossary]] = {}
        self._allowed: dict[str, bool] = {}
        for name, entry in team.databases.items():
            _check_retriever(name, entry)

    def allow(self, *, replay: bool = False) -> None:
        """Allow for this session, over all databases, what the settings of one may allow for good."""
        self._allowed = {"replay": True} if replay else {}

    def ask_with(self, model: str | dict[str, Any]) -> None:
        """Ask another model from now on."""
        self.team = replace(self.team, model=model)

    # ── databases ────────────────────────────────────────────────────────────────────────────────────────────────────

    def names(self) -> list[str]:
        """Name every database that can be asked: of the settings and this session, and where none are, of the store."""
        named = [*self.team.databases, *self._named_here]
        return named or [place.database for place in self.known_places()]

    def choose(self, name: str | None) -> str:
        """Find the database that is meant: the one named, or else the only one there is."""
        if name and (name in self.names() or self._place(name)):
            return name
        if name and is_location(name):
            return self.add(name)
        choices = self.names()
        if name:
            unknown = ConfigError.unknown("database", name, choices)
            raise unknown if choices else ConfigError(f"database: no such file or name: {name}")
        if len(choices) == 1:
            return choices[0]
        if not choices:
            raise ConfigError("database: none is known yet; name one with --db FILE or URL, or run: sqlcrystal init")
        raise ConfigError(f"database: say which; choose from {', '.join(sorted(choices))}")

    def add(self, url: str, name: str | None = None) -> str:
        """Take in a database by its URL or path, and return its name; a name that is given is taken as true."""
        for known, entry in self.team.databases.items():
            if name in (None, known) and same_place(entry.url, url):
                return known
        entry = replace(DatabaseEntry(url=absolute(url)), **self._allowed)
        database = _open(entry, name)
        database.close()
        own_name = name or database.name
        known_place = self._place(own_name)
        taken = (
            self.team.databases[own_name].url if own_name in self.team.databases else known_place and known_place.url
        )
        if taken and not name and not same_place(taken, entry.url) and not is_gone(taken):
            raise ConfigError(
                f"database {own_name}: the store knows another of this name ({without_password(taken)}); "
                f"give this one its own with --name"
            )
        self._named_here[own_name] = entry
        return own_name

    def open(self, name: str) -> OpenDatabase:
        """Give a database by its name, opened once."""
        return self._open_databases.get(name, lambda: self._opened_now(name))

    def remember(self, opened: OpenDatabase) -> None:
        """Keep in the store where a database lies that no settings name."""
        if opened.name in self.team.databases or opened.name in self._remembered:
            return
        from sqlcrystal.bank import DatabaseLocation

        model = self.team.model if isinstance(self.team.model, str) else ""
        location = DatabaseLocation(database=opened.name, url=without_password(opened.entry.url), model=model)
        self.store.locations.remember(location)
        self._remembered.add(opened.name)

    def known_places(self) -> "list[DatabaseLocation]":
        """Tell where databases were asked before without settings, the last one first."""
        return self.store.locations.all() if self.store_exists() else []

    def known_name(self, name: str) -> str:
        """Name a database as its cards do: by its name, or opened by its URL or file."""
        if name in self.names() or not is_location(name):
            return name
        return self.add(name)

    def entry(self, name: str) -> DatabaseEntry | None:
        """Give the settings of a database that settings or this session name."""
        return self._named_here.get(name) or self.team.databases.get(name)

    def experiment(self, name: str) -> "Experiment":
        """Tell how a database's questions are divided: as a person chose last, or else as the settings say."""
        from sqlcrystal.bank import Experiment

        chosen = self.store.experiments.of(name) if self.store_exists() else None
        entry = self.entry(name)
        if chosen is not None or entry is None:
            return chosen or Experiment(database=name)
        return Experiment(database=name, hold_out=entry.hold_out, both_arms=entry.both_arms)

    def knows(self, name: str) -> bool:
        """Tell whether a database can be opened by its name."""
        return self.entry(name) is not None or self._place(name) is not None

    def _place(self, name: str) -> "DatabaseLocation | None":
        return next((place for place in self.known_places() if place.database == name), None)

    def _entry(self, name: str) -> DatabaseEntry:
        entry = self.entry(name)
        if entry is None:
            place = self._place(name)
            if place is None:
                raise ConfigError.unknown("database", name, self.names())
            entry = DatabaseEntry(url=place.url)
        return replace(entry, **self._allowed)

    def _opened_now(self, name: str) -> OpenDatabase:
        entry = self._entry(name)
        database = ClockedDatabase(_open(entry, name))
        with self._lock:
            self._opened.append(database)
        hints = Path(entry.hints).read_text(encoding="utf-8") if entry.hints else ""
        return OpenDatabase(name, entry, database, Presenter(database, embedder=self._vectors, hints=hints))

    # ── model and memory ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def model(self) -> LanguageModel:
        """Give the team's model; its weights are read on its first call."""
        if self._given_model is not None:
            return self._given_model
        with self._lock:
            if self._model is None:
                from sqlcrystal.models.local import LocalModel
                from sqlcrystal.models.opening import open_model

                spec = self.team.model
                if isinstance(spec, str) and is_url(spec):
                    spec = {**model_table(spec), "retry": {"attempts": ATTEMPTS}}
                self._model = open_model(spec)
                if isinstance(self._model, LocalModel):
                    self._model.keep_beginnings(shared_beginning)
            return self._model

    def memory(self, opened: OpenDatabase, *, own: bool = True) -> Memory:
        """Tell what questions over a database may be told; `own` lets a question see the card that came from itself."""
        if self.team.cards == 0 or not self.store_exists() or not self.store.bank.serves(opened.name):
            return NoMemory()
        return BankMemory(self.store.bank, self.retriever_of(opened.name), k=self.team.cards, own=own)

    def glossary(self, name: str) -> "Glossary":
        """Give the definitions that are served for a database, read again when its cards have changed."""
        from sqlcrystal.telling.words import NO_TERMS, Glossary

        if not self.store_exists():
            return NO_TERMS
        revision = self.store.bank.revision(name)
        known = self._glossaries.get(name)
        if known is None or known[0] != revision:
            kept = self.store.bank.find(database=name, status=CardStatus.ACTIVE, kind=CardKind.DEFINITION)
            terms = Glossary((card.id, card.definition) for card in kept if card.definition is not None)
            known = self._glossaries[name] = (revision, terms)
        return known[1]

    def retriever(self, name: str = DEFAULT_RETRIEVER) -> Retriever:
        """Find cards by meaning, the same as a study's `dense` but for banks of any size; or as the name says."""
        return self._retrievers.get(name, lambda: self._make_retriever(name))

    def retriever_of(self, name: str) -> Retriever:
        """Find cards as the settings of a database say."""
        entry = self._named_here.get(name) or self.team.databases.get(name)
        return self.retriever(entry.retriever if entry is not None else DEFAULT_RETRIEVER)

    def _make_retriever(self, name: str) -> Retriever:
        if name == DEFAULT_RETRIEVER:
            from sqlcrystal.consumption.indexed import Indexed

            return Indexed(self._vectors())
        from sqlcrystal.assembly import retriever_in_service
        from sqlcrystal.consumption.retriever import Reach

        reach = Reach(self._vectors, lambda name: self.open(name).database.schema(), self.team.seed)
        return retriever_in_service(name, key="retriever").of(reach)

    def _vectors(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                from sqlcrystal.consumption.dense import Vectors
                from sqlcrystal.models.embeddings import open_embedder

                self._embedder = Vectors.of(self._given_embedder or open_embedder(self.team.embedder))
            return self._embedder

    # ── what is known and never kept ─────────────────────────────────────────────────────────────────────────────────

    def keeps_no_values(self, name: str) -> bool:
        """Tell whether nothing that is kept may hold a value of this database; asked without opening it."""
        entry = self.entry(name)
        return entry is not None and entry.values == "never"

    def hear(self, answer: str, question: str, *, about: str = "") -> None:
        """Remember a question as it was spoken for as long as this process lives, and only the latest of them.

        `about` is what is kept of it, where a note made it another than the answer's own.
        """
        with self._lock:
            self._heard[answer, about] = question
            while len(self._heard) > MOST_HEARD:
                self._heard.pop(next(iter(self._heard)))

    def heard(self, answer: str, *, about: str = "") -> str:
        """Give a question as it was spoken; nothing where that is no longer known."""
        return self._heard.get((answer, about), "")

    # ── store and people ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def store(self) -> "Store":
        """Give the store, made if it is not there."""
        with self._lock:
            if self._store is None:
                from sqlcrystal.bank import Store

                self._store = Store(self._store_place())
            return self._store

    @property
    def bank(self) -> Bank:
        """Give the cards; a store that is not there yet has none, and is not made by looking."""
        return self.store.bank if self.store_exists() else FrozenBank(())

    def store_exists(self) -> bool:
        """Tell whether there is anything to read; a server's store always counts as there."""
        if self._store is not None:
            return True
        place = self._store_place()
        return ("://" in place and not place.startswith("sqlite:///")) or Path(
            place.removeprefix("sqlite:///")
        ).expanduser().is_file()

    def person(self, by: str) -> str:
        """Name the giver of a verdict: the one named, or the one at the keyboard; the team must know them."""
        name = by or current_user()
        if self.team.people and name not in self.team.people:
            raise ConfigError.unknown("by", name, self.team.people)
        return name

    def _store_place(self) -> str:
        return resolve_secrets(self.team.store, where="store")

    def close(self) -> None:
        """Close what was opened here."""
        with self._lock:
            for database in self._opened:
                database.close()
            self._opened.clear()
            self._open_databases = SingleFlight()
            if self._model is not None:
                self._model.close()
            if self._embedder is not None and self._given_embedder is None:
                self._embedder.close()
            if self._store is not None:
                self._store.close()
            self._retrievers = SingleFlight()
            self._model = self._embedder = self._store = None


def _open(entry: DatabaseEntry, name: str | None) -> Database:
    try:
        return open_database(
            resolve_secrets(entry.url, where=f"databases.{name}.url" if name else "database"),
            name=name,
            inspect=False,  # a model writes the SQL
            functions=entry.functions,
            allow_privileged=entry.allow_privileged,
        )
    except OSError as error:
        raise UserError(f"database {name or entry.url}: cannot be opened ({error.strerror})") from error


def _check_retriever(name: str, entry: DatabaseEntry) -> None:
    """Refuse a retriever that is no choice, before anybody asks; the usual one needs no look at the table."""
    if entry.retriever != DEFAULT_RETRIEVER:
        from sqlcrystal.assembly import retriever_in_service

        retriever_in_service(entry.retriever, key=f"databases.{name}.retriever")


_PASSWORD = re.compile(r"(?<=://)(?P<user>[^:/@]*):(?!\$\{)[^@]*@")


def is_location(text: str) -> bool:
    """Tell whether a text says where a database lies, and does not merely name it."""
    return "://" in text or Path(text).expanduser().is_file()


def is_gone(url: str) -> bool:
    """Tell whether a location is a file that is no longer there."""
    whole = _canonical(url)
    return "://" not in whole and not Path(whole).is_file()


def absolute(url: str) -> str:
    """Write a location so that it means the same from every folder."""
    for scheme in FILE_SCHEMES:
        if url.startswith(scheme):
            return f"{scheme}{Path(url.removeprefix(scheme)).expanduser().absolute()}"
    return url if "://" in url else str(Path(url).expanduser().absolute())


def same_place(one: str, other: str) -> bool:
    """Tell whether two locations are the same file, or the same database of a server."""
    return _canonical(one) == _canonical(other)


def without_password(url: str) -> str:
    """Write a location as it may be kept and shown; a `${NAME}` stays, for it holds no secret."""
    return _PASSWORD.sub(r"\g<user>@", url)


def _canonical(url: str) -> str:
    whole = absolute(url)
    for scheme in FILE_SCHEMES:
        whole = whole.removeprefix(scheme)
    return re.sub(r"(?<=://)[^/@]*@", "", whole) if "://" in whole else str(Path(whole).resolve())
