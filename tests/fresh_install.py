"""Fresh installs of the wheel with exactly what an extra asks for.

Without a network they are linked from what is installed here; with `SQLCRYSTAL_FRESH=pip` (`make fresh`) pip fetches
them, by the very lines of the page. A page that forgets to name an extra fails: what it does not install cannot be
imported.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
BY_PIP = os.environ.get("SQLCRYSTAL_FRESH") == "pip"
INSTALL_LINE = r"pip install (?:'sqlcrystal[^']*'|sqlcrystal\b)"
LINES: dict[frozenset[str], tuple[str, ...]] = {}
"""The lines of a page that named some extras, letter for letter."""
PROGRAM = """#!{python}
from sqlcrystal.interfaces.cli.app import main
main()
"""


def named_extras(*texts: str) -> frozenset[str]:
    """The extras that the install lines of some pages name."""
    lines = [line for text in texts for line in re.findall(INSTALL_LINE, text)]
    named = [extra for line in lines for extra in re.findall(r"\[([\w,]+)\]", line)]
    extras = frozenset(extra for some in named for extra in some.split(","))
    if lines:
        LINES.setdefault(extras, tuple(dict.fromkeys(lines)))
    return extras


def environment_of(extras: Iterable[str], cache_folder: Path, **more: str) -> dict[str, str]:
    """The environment of a shell in which an install with these extras is all there is of Python packages."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    path = f"{installed(frozenset(extras)) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**kept, **_offering_the_wheel(), "PATH": path, "SQLCRYSTAL_CACHE": str(cache_folder), **more}


@cache
def installed(extras: frozenset[str]) -> Path:
    """A virtual environment with the wheel and the closure of its requirements under these extras."""
    folder = Path(tempfile.mkdtemp(prefix="sqlcrystal-fresh-", dir=_scratch()))
    venv.create(folder, symlinks=True, with_pip=BY_PIP)
    if BY_PIP:
        named = f"'sqlcrystal[{','.join(sorted(extras))}]'" if extras else "sqlcrystal"
        _fetch(LINES.get(extras, (f"pip install {named}",)), folder)
        return folder
    site = next((folder / "lib").glob("python*/site-packages"))
    with zipfile.ZipFile(_wheel()) as archive:
        archive.extractall(site)
    ours = next(iter(distributions(name="sqlcrystal", path=[str(site)])))
    _link(_closure(ours, extras), site)
    program = folder / "bin" / "sqlcrystal"
    program.write_text(PROGRAM.format(python=folder / "bin" / "python3"))
    program.chmod(0o755)
    return folder


def _fetch(lines: Iterable[str], folder: Path) -> None:
    """Run a page's install lines in an environment that holds nothing but pip."""
    settings = {**os.environ, **_offering_the_wheel(), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for line in lines:
        begun = time.monotonic()
        done = subprocess.run(["bash", "-c", line], env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        print(f"{line}  ({time.monotonic() - begun:.0f} s)")


def _offering_the_wheel() -> dict[str, str]:
    """Have pip find the wheel of this checkout beside what its index offers."""
    if not BY_PIP:
        return {}
    places = f"{os.environ.get('PIP_FIND_LINKS', '')} {_wheel().parent}".strip()
    return {"PIP_FIND_LINKS": places, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@cache
def _scratch() -> str:
    """A folder that is gone when the tests end."""
    import atexit
    import shutil

    folder = tempfile.mkdtemp(prefix="sqlcrystal-installs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _wheel() -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", _scratch()]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=240)
    (wheel,) = Path(_scratch()).glob("*.whl")
    return wheel


def _closure(ours: Distribution, extras: frozenset[str]) -> list[Distribution]:
    """Everything that an installer would bring along, as far as the markers of this machine go."""
    found: dict[str, Distribution] = {}
    waiting = [("sqlcrystal", ours, extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, holder, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        for needed in map(Requirement, holder.requires or ()):
            if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                continue
            key = re.sub(r"[-_.]+", "-", needed.name).lower()
            try:
                held = ours if key == "sqlcrystal" else distribution(needed.name)
            except PackageNotFoundError:
                pytest.skip(f"LOUD: {needed} is not installed here, so that {name}'s install cannot be made of it")
            if held is not ours:
                found[key] = held
            waiting.append((key, held, frozenset(needed.extras) | (wanted if held is ours else frozenset())))
    return list(found.values())


def _link(held: list[Distribution], site: Path) -> None:
    """Link whole folders where one distribution owns them, single files where several share one."""
    owners = Counter(top for each in held for top in {path.parts[0] for path in _files(each)})
    shared = {top for top, count in owners.items() if count > 1}
    for each in held:
        places = {Path(path.parts[0]) if path.parts[0] not in shared else path for path in _files(each)}
        for place in places:
            source, target = Path(str(each.locate_file(place))), site / place
            if source.exists() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)


def _files(held: Distribution) -> Iterator[Path]:
    """Files inside site-packages; programs and compiled copies are none of them."""
    for path in held.files or ():
        place = Path(str(path))
        if place.parts[0] not in ("..", "__pycache__") and place.suffix != ".pyc":
            yield place
