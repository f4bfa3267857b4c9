"""A team's open parts in the name of one caller: opening, settings, closing; `Crystal` adds the actions."""

import copy
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from sqlcrystal.config import TEAM_FILE, Prices, TeamFile, read_team
from sqlcrystal.errors import Forbidden, SqlcrystalError
from sqlcrystal.protocols import Embedder, LanguageModel
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.workspace import Workspace, absolute

if TYPE_CHECKING:
    from sqlcrystal.bank import Store

ModelSpec = str | Mapping[str, Any] | LanguageModel


class OpenTeam:
    """A workspace and the caller it works for; threads may share one."""

    def __init__(self, team: TeamFile, *, model: LanguageModel | None = None, embedder: Embedder | None = None) -> None:
        """Take validated settings; nothing is opened before it is needed."""
        self.workspace = Workspace(team, model=model, embedder=embedder)
        self.caller = Caller.at_keyboard()

    @classmethod
    def open(cls, path: Path | str = TEAM_FILE) -> Self:
        """Open with the settings of a sqlcrystal.toml."""
        return cls(read_team(path))

    @classmethod
    def over(
        cls,
        db: str | Path | None = None,
        *,
        model: ModelSpec | None = None,
        store: str | Path = "sqlcrystal.db",
        name: str | None = None,
        embedder: str | Mapping[str, Any] | Embedder | None = None,
        team: TeamFile | None = None,
    ) -> Self:
        """Open without a settings file: a database by URL or path, a model by name, URL, table or object, a store."""
        settings = replace(team or TeamFile(), store=absolute(str(store)))
        given_model = given_embedder = None
        if isinstance(model, str | Mapping):
            settings = replace(settings, model=model if isinstance(model, str) else dict(model))
        else:
            given_model = model
        if isinstance(embedder, str | Mapping):
            settings = replace(settings, embedder=embedder if isinstance(embedder, str) else dict(embedder))
        else:
            given_embedder = embedder
        crystal = cls(settings, model=given_model, embedder=given_embedder)
        if db is not None:
            crystal.workspace.add(str(db), name)
        return crystal

    def acting_for(self, caller: Caller) -> Self:
        """Give the same team's Crystal to another caller, under their name and scopes."""
        other = copy.copy(self)
        other.caller = caller
        return other

    # ── the team's settings ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def store(self) -> "Store":
        """Give the store behind it, for programs of the team's own; interfaces do not reach for it."""
        return self.workspace.store

    @property
    def prices(self) -> Prices:
        """Give the prices of tokens."""
        return self.workspace.team.prices

    @property
    def model_spec(self) -> str | Mapping[str, Any]:
        """Give the model as the settings name it."""
        return self.workspace.team.model

    def model_name(self) -> str:
        """Name the model; where it cannot be opened, say why."""
        try:
            return self.workspace.model.name
        except SqlcrystalError as error:
            return str(error)

    @property
    def reads_at_once(self) -> bool:
        """Tell whether a look into the store takes microseconds: it is a file, and no server has to be asked."""
        return self.store.is_file

    def is_ready(self) -> bool:
        """Tell whether the store answers."""
        try:
            self.store.answers.recent(limit=1)
        except SqlcrystalError:
            return False
        return True

    def warm_up(self) -> None:
        """Load what the first question would wait for."""
        from sqlcrystal.serving.asking import warm_up

        warm_up(self.workspace)

    def close(self) -> None:
        """Close what was opened."""
        self.workspace.close()

    def __enter__(self) -> Self:
        """Use it in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def _named(self, by: str) -> str:
        """Name the person who acts: the caller, or at the keyboard another who is named."""
        if by and by != self.caller.person and not self.caller.local:
            raise Forbidden(f"by: you act as {self.caller.person!r}, not as {by!r}")
        return by or self.caller.person

    def _person(self, by: str) -> str:
        """Name the person who vouches; refused when the team does not know them."""
        return self.workspace.person(self._named(by))
