"""Where databases lie: telling a location from a name, two locations apart, and a location without its password."""

import re
from pathlib import Path

from sqlcrystal.databases.engines import FILE_SCHEMES

_PASSWORD = re.compile(r"(?<=://)(?P<user>[^:/@]*):(?!\$\{)[^@]*@")


def is_location(text: str) -> bool:
    """Whether a text says where a database lies, and does not merely name it."""
    return "://" in text or Path(text).expanduser().is_file()


def is_gone(url: str) -> bool:
    """Whether a location is a file that is no longer there."""
    whole = _canonical(url)
    return "://" not in whole and not Path(whole).is_file()


def absolute(url: str) -> str:
    """A location that means the same from every folder."""
    for scheme in FILE_SCHEMES:
        if url.startswith(scheme):
            return f"{scheme}{Path(url.removeprefix(scheme)).expanduser().absolute()}"
    return url if "://" in url else str(Path(url).expanduser().absolute())


def same_place(one: str, other: str) -> bool:
    """Whether two locations are the same file, or the same database of a server."""
    return _canonical(one) == _canonical(other)


def without_password(url: str) -> str:
    """A location that may be kept and shown; a `${NAME}` stays, for it holds no secret."""
    return _PASSWORD.sub(r"\g<user>@", url)


def _canonical(url: str) -> str:
    whole = absolute(url)
    for scheme in FILE_SCHEMES:
        whole = whole.removeprefix(scheme)
    return re.sub(r"(?<=://)[^/@]*@", "", whole) if "://" in whole else str(Path(whole).resolve())
