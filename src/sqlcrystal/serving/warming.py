"""What the first question would wait for, loaded before anybody asks: the parser, the embedder and the cards."""

from contextlib import suppress
from time import monotonic

from sqlcrystal.errors import SqlcrystalError
from sqlcrystal.serving.asking import as_question
from sqlcrystal.serving.workspace import Workspace

SECONDS = 5.0
"""A bank that takes longer to embed is left to its first question: a service that does not start helps nobody."""


def warm_up(workspace: Workspace, *, seconds: float = SECONDS) -> None:
    """Search the cards of each database once; what cannot be reached now is told to whoever asks."""
    import sqlcrystal.databases.symptoms
    import sqlcrystal.serving.replay  # noqa: F401  (loading the parser takes longer than a question)

    until = monotonic() + seconds
    with suppress(SqlcrystalError):
        for name in workspace.names():
            if monotonic() > until:
                return
            if workspace.store_exists() and workspace.store.bank.serves(name):
                workspace.retriever_of(name).retrieve(
                    as_question("How many are there?", name), workspace.store.bank, k=1
                )
