"""The process: listen, serve until told to stop, let what is under way end first, and close who sends nothing."""

import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import uvicorn
from fastapi import FastAPI

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.logs import log_lines
from sqlcrystal.interfaces.server.settings import ServerSettings

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal

TICKS = 5
"""The web server ticks ten times a second; the connections are looked at twice."""


class PatientServer(uvicorn.Server):
    """The web server, which closes connections that are slow to send: those to whom nothing is owed."""

    def __init__(self, config: uvicorn.Config, settings: ServerSettings) -> None:
        """Take the limits of the service."""
        super().__init__(config)
        self._settings = settings
        self._since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    async def on_tick(self, counter: int) -> bool:
        """Look at the connections now and then."""
        if counter % TICKS == 0:
            self._close_slow(time.monotonic())
        return await super().on_tick(counter)

    def _close_slow(self, now: float) -> None:
        """Close what has waited too long, and of too many the oldest."""
        waiting = []
        for connection in list(self.server_state.connections):
            if _owes_a_request(connection):
                waiting.append((self._since.setdefault(connection, now), connection))
            else:
                self._since.pop(connection, None)
        waiting.sort(key=lambda each: each[0])
        surplus = max(0, len(waiting) - self._settings.idle_connections)
        for number, (since, connection) in enumerate(waiting):
            if number < surplus or now - since > self._settings.request_seconds:
                connection.transport.abort()


def _owes_a_request(connection: Any) -> bool:
    """Tell whether a connection has yet to send a request, or the rest of one."""
    cycle = connection.cycle
    return cycle is None or cycle.response_complete or cycle.more_body


def run(crystal: "Crystal", settings: ServerSettings, *, host: str, port: int, log_level: str) -> None:
    """Serve until SIGTERM or Ctrl+C."""
    log_lines(log_level)
    crystal.warm_up()
    app = make_app(crystal, settings)
    from sqlcrystal.interfaces.server.telemetry import trace

    trace(app)
    serve_app(
        app,
        host=host,
        port=port,
        welcome=lambda address: _welcome(crystal, settings, address),
        settings=settings,
    )


def serve_app(
    app: FastAPI,
    *,
    host: str,
    port: int,
    welcome: Callable[[str], str],
    settings: ServerSettings,
) -> None:
    """Serve an application until SIGTERM or Ctrl+C; `welcome` says what is at the address."""
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    print(welcome(f"http://{shown}:{listening.getsockname()[1]}"), file=sys.stderr, flush=True)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # the gate writes its own line, without queries
        server_header=False,
        proxy_headers=settings.secure_cookie,
        forwarded_allow_ips="*" if settings.secure_cookie else None,
        timeout_graceful_shutdown=int(settings.stop_seconds) + 5,
        timeout_keep_alive=30,
        limit_concurrency=2000,
    )
    PatientServer(config, settings).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"--host {host} --port {port}: cannot listen there ({error.strerror})") from None
    return listening


def _welcome(crystal: "Crystal", settings: ServerSettings, address: str) -> str:
    if settings.demo:
        from sqlcrystal.serving.demo import demo_token

        return f"sqlcrystal demo: open {address}/login#{demo_token(crystal)}"
    if not any(not grant.revoked_at for grant in crystal.tokens()):
        command = "sqlcrystal token create NAME --scope ask --scope judge --scope manage"
        return (
            f"sqlcrystal serves {address}, but nobody has a token yet; make one (with the --store of this): {command}"
        )
    return f"sqlcrystal serves {address}"
