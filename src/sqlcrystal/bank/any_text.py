"""Text as the store keeps it: any string comes back as it went in, and is ordered the same on every engine."""

import re

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine

# PostgreSQL's text cannot hold NUL, which JSON and SQLite can: it is spelt with a code point nobody else may use.
_MARK = "\ue000"
_SPELT = {"\x00": f"{_MARK}0", _MARK: f"{_MARK}1"}
_MEANT = {spelt: meant for meant, spelt in _SPELT.items()}
_TO_SPELL = re.compile(f"[\x00{_MARK}]")
_TO_READ = re.compile(f"{_MARK}[01]")


class AnyText(TypeDecorator[str]):
    """Text compared by its code points: PostgreSQL's own order depends on how the server was set up."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[str]:
        """Pin the collation where there is a choice."""
        return dialect.type_descriptor(sa.Text(collation="C") if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Spell what PostgreSQL cannot hold."""
        if value is None or dialect.name != "postgresql":
            return value
        return _TO_SPELL.sub(lambda match: _SPELT[match[0]], value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Read it again."""
        if value is None or dialect.name != "postgresql" or _MARK not in value:
            return value
        return _TO_READ.sub(lambda match: _MEANT[match[0]], value)
