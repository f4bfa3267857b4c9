"""Settings of the service: limits, and the headers of proxies that it believes."""

from msgspec import Struct


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Limits of one process; each has a flag of the same name in `sqlcrystal serve`."""

    concurrency: int = 4
    """Questions worked on at a time, per database."""
    queue_size: int = 50
    """Questions that may wait for their turn, per database; the next one is turned away."""
    answer_seconds: float = 120.0
    """An answer that takes longer is given up."""
    requests_per_minute: int = 600
    """Of one token; the bucket holds a sixth of it for bursts."""
    body_bytes: int = 256 * 1024
    request_seconds: float = 20.0
    """How long a connection may take to send a whole request."""
    idle_connections: int = 500
    """Connections without a whole request that may be open at a time; of more the oldest are closed."""
    stop_seconds: float = 20.0
    """How long a stopping server waits for answers under way."""
    session_hours: float = 12.0
    """How long a browser stays logged in."""
    secure_cookie: bool = False
    """Whether browsers may send the session over HTTPS only; on behind a proxy that ends TLS."""
    allow_write: bool = False
    """Whether MCP clients may confirm and reject."""
    issue_for_others: bool = False
    """Whether managers may issue tokens in the name of a person who is known already."""
    studies: str = "runs"
    """The folder whose study reports the page shows."""
    demo: bool = False
