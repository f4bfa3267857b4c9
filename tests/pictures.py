"""The pictures of README and documentation, taken of the demo.

`PYTHONPATH=tests python -m tests.pictures` writes them anew.
Light and dark, at the width of a desk and of a phone; the browser is the one of the tests, so that whoever has it can
take them again.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from browser import opened_browser
from running_service import listening
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.serving.demo import STORY_DATABASE, DemoCrystal, demo_crystal, demo_token

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SCHEMES = ("light", "dark")
MOST_BYTES = 130_000
COLOURS = 256


class Picture(NamedTuple):
    """One picture: its name, the page, how wide and high the window is, and what must be there before it is taken."""

    name: str
    path: str
    width: int
    height: int
    ready: str


PICTURES = (
    Picture("story", "/demo", 1280, 720, ".story-steps"),
    Picture("answer", "/a/{right}", 1280, 800, "html.js #verdict"),
    Picture("bank", f"/bank?database={STORY_DATABASE}", 1280, 800, "table.lines"),
    Picture("value", f"/value?database={STORY_DATABASE}", 1280, 800, ".tile"),
    Picture("queue", f"/queue?database={STORY_DATABASE}", 1280, 800, "html.js #verdict"),
    Picture("phone", "/a/{right}", 390, 844, "html.js #verdict"),
)


class Demo(NamedTuple):
    """A running demo with a browser."""

    url: str
    crystal: DemoCrystal
    browser: Any


@contextmanager
def running_demo() -> Iterator[Demo]:
    """The demo as `make demo` serves it, on a free port."""
    with (
        demo_crystal() as crystal,
        listening(make_app(crystal, ServerSettings(demo=True, requests_per_minute=100_000))) as url,
        opened_browser() as browser,
    ):
        yield Demo(url, crystal, browser)


def take(demo: Demo, picture: Picture, scheme: str) -> bytes:
    """One picture as PNG with few colours."""
    pair = demo.crystal.opening()
    assert pair is not None
    context = demo.browser.new_context(
        viewport={"width": picture.width, "height": picture.height}, color_scheme=scheme, reduced_motion="reduce"
    )
    tab = context.new_page()
    tab.goto(f"{demo.url}/login#{demo_token(demo.crystal)}")
    tab.wait_for_selector(".story-steps")
    tab.goto(demo.url + picture.path.format(wrong=pair[0], right=pair[1]))
    tab.wait_for_selector(picture.ready)
    taken = tab.screenshot()
    context.close()
    return few_colours(taken)


def few_colours(png: bytes) -> bytes:
    """The same picture with a palette: a page has few colours, and a clone should not carry more."""
    from PIL import Image

    out = BytesIO()
    Image.open(BytesIO(png)).convert("RGB").quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(out, "PNG", optimize=True)
    return out.getvalue()


def main(folder: Path = FOLDER) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with running_demo() as demo:
        for picture in PICTURES:
            for scheme in SCHEMES:
                path = folder / f"{picture.name}-{scheme}.png"
                path.write_bytes(take(demo, picture, scheme))
                print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
