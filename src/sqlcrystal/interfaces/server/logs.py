"""Structured logs: one JSON object a line on stderr; names of routes, never queries, bodies, headers or values."""

import json
import logging
import sys
from datetime import UTC, datetime

LOGGER = "sqlcrystal.server"


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, event and whatever fields the caller named."""
        fields: dict[str, object] = getattr(record, "fields", {})
        document: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **fields,
        }
        if record.exc_info and record.exc_info[0] is not None:
            # The type and the place tell what to look for; an exception's text may quote a value.
            traceback = record.exc_info[2]
            while traceback is not None and traceback.tb_next is not None:
                traceback = traceback.tb_next
            document["error"] = record.exc_info[0].__name__
            if traceback is not None:
                document["at"] = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        return json.dumps(document, ensure_ascii=True)


def log_lines(level: str = "info") -> None:
    """Send this package's and the web server's messages to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER, "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())


def event(name: str, *, level: int = logging.INFO, cause: BaseException | None = None, **fields: object) -> None:
    """One line of the log; of a cause the type and the place."""
    logging.getLogger(LOGGER).log(level, name, exc_info=cause, extra={"fields": fields})
