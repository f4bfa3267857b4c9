"""A PyMySQL connection that stops reading at a byte budget, since a single row may be larger than memory."""

from typing import Any

from pymysql.connections import Connection

from sqlcrystal.databases.limits import MAX_BYTES, TooLarge


class BoundedConnection(Connection):
    """Counts what comes over the socket while a statement runs."""

    _budget = float("inf")

    @property
    def is_mariadb(self) -> bool:
        """MariaDB names some settings otherwise than MySQL."""
        return "mariadb" in str(self.get_server_info()).lower()  # type: ignore[no-untyped-call]

    def fileno(self) -> int:
        """The socket, for whoever must hang up from another thread."""
        return int(self._sock.fileno())  # type: ignore[attr-defined]

    def limit(self, budget: int) -> None:
        """Bound the bytes of the next result."""
        self._budget = budget

    def unlimit(self) -> None:
        """Lift the bounds, for the statements of this package."""
        self._budget = float("inf")

    def abandon(self) -> None:
        """Hang up on a result that is not wanted any more, instead of reading it to its end."""
        result = self._result  # type: ignore[has-type]
        if result is not None:
            result.unbuffered_active = False
        self._result = None
        self._force_close()  # type: ignore[attr-defined]

    def _read_bytes(self, num_bytes: int) -> Any:
        self._budget -= num_bytes
        if self._budget < 0:
            self.abandon()
            raise TooLarge(f"the result exceeds {MAX_BYTES} bytes")
        return super()._read_bytes(num_bytes)  # type: ignore[misc]
