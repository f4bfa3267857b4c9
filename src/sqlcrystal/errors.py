"""The exception tree, by fault: the user's, the world's or the store's.

SqlcrystalError
├── UserError              a mistake the user can mend: one line, exit code 2
│   ├── ConfigError        an unknown name or a bad value in a setting, study file or flag
│   ├── NotFound           an answer, card, proposal, database or token that is not there, or not for this caller
│   ├── NotAQuestion       a greeting, an order to change data, or a question about something else: no SQL is made up
│   ├── Forbidden          an action that the caller's scopes do not allow
│   ├── Contradicted       a confirmation that a near card speaks against; the same again with consent is done
│   └── DataError          a file that is missing, broken or does not fit the benchmark
├── InfrastructureError    the world failed, and no answer was wrong
│   ├── DatabaseError      a database cannot be opened or reached
│   ├── CheckError         an external check gave no verdict: it cannot run, is late, or speaks out of turn
│   └── ModelError         a model call failed for good
│       ├── ModelRefusedAccess the endpoint refused the caller (401, 402, 403, 404): key, credit, address or model name
│       ├── ModelRejected      the endpoint refused this one request (another 4xx): retrying cannot help
│       ├── ModelUnavailable   retries are used up (429, 5xx, resets)
│       ├── ModelTimeout       the call's hard deadline passed
│       └── BadReply           the endpoint answered, but not with a completion
├── RecordingMiss          a replay asked for a prompt that was never recorded
└── BankError              the card store cannot do what was asked
    └── StoreAway          the server of the store does not answer; it may come back

SQL that fails is none of these: it is a finding (`types.Failure`).
"""

from collections.abc import Iterable
from typing import Self


class SqlcrystalError(Exception):
    """Anything this package raises on purpose."""

    def hinting(self, hint: str) -> Self:
        """Add what to type: the command line and tracebacks show it, pages and HTTP do not."""
        self.add_note(hint)
        return self

    @property
    def line(self) -> str:
        """Write it for the command line, with what to type."""
        return "; ".join([str(self), *getattr(self, "__notes__", ())])


class UserError(SqlcrystalError):
    """A mistake the user can mend; shown as one line."""


class ConfigError(UserError):
    """A setting, study key or name that is not valid."""

    @classmethod
    def unknown(cls, key: str, value: object, choices: Iterable[str]) -> "ConfigError":
        """Name the key, the offending value and every valid choice."""
        return cls(f"{key}: unknown value {value!r}; choose from {', '.join(sorted(choices))}")


class NotFound(UserError):
    """No such thing, or none that this caller may know of."""


class NotAQuestion(UserError):
    """A text that asks nothing of the database; its message is the sentence that answers it."""


class Forbidden(UserError):
    """An action that the caller's scopes do not allow."""


class Contradicted(UserError):
    """A near card says something else; the caller may confirm anyway."""


class DataError(UserError):
    """A file that is missing, broken, or does not fit."""


class InfrastructureError(SqlcrystalError):
    """The world failed; never counted as a wrong answer."""


class DatabaseError(InfrastructureError):
    """A database cannot be opened or reached."""


class CheckError(InfrastructureError):
    """An external check gave no verdict; nothing was admitted or rejected."""


class ModelError(InfrastructureError):
    """A model call that failed for good."""


class ModelRefusedAccess(ModelError):
    """The endpoint refused the caller, so every other request will be refused as well: nothing can be measured."""


class ModelRejected(ModelError):
    """The endpoint refused this request; the same one will be refused again, another may be answered."""


class ModelUnavailable(ModelError):
    """The endpoint kept failing until the retries were used up."""


class ModelTimeout(ModelError):
    """The hard deadline of the call passed."""


class BadReply(ModelError):
    """The endpoint answered with something that is not a completion."""


class RecordingMiss(SqlcrystalError):
    """A replay needs a completion that the recording does not hold."""


class BankError(SqlcrystalError):
    """The card store cannot do what was asked."""


class StoreAway(BankError):
    """The server of the store does not answer; the same may succeed when it is back."""
