"""Write the report that the demo shows: the bundled study, as far as its recording reaches.

`python -m tests.bundled_report` takes a few minutes; run it again when the recording or the report has changed.
"""

import lzma
import shutil
import tempfile
from pathlib import Path

from msgspec.structs import replace

from sqlcrystal.config import StudyFile, read_study
from sqlcrystal.study.opening import run_study
from sqlcrystal.study.report.write import write_report

STUDIES = Path(__file__).resolve().parents[1] / "studies"
REPORTS = STUDIES / "reports"
RECORDED = {
    "W0": ("transfer", "replay", "retention", "rerun", "paraphrase", "paraphrase-others", "paraphrase-none"),
    "k=1": ("transfer",),
    "k=10": ("transfer",),
    "permuted": ("transfer",),
    "none": ("transfer", "repair", "engine-repair"),
    "profile": ("transfer",),
    "profile W0": ("transfer",),
    "W0 fallback": ("transfer",),
    "profile W0 fallback": ("transfer",),
    "served": ("transfer", "served"),
    "served without cards": ("transfer",),
}
"""Arms and settings for which the recording holds every reply, under all three seeds."""


def as_recorded(study: StudyFile) -> StudyFile:
    """The study without what waits for its recording; its confirmatory family stays as it was designated."""

    def is_recorded(side: str) -> bool:
        arm, _, setting = side.partition("/")
        return (setting or "transfer") in RECORDED.get(arm, ())

    return replace(
        study,
        default=replace(study.default, settings=RECORDED["W0"]),
        arms=tuple(RECORDED),
        arm=tuple(replace(arm, settings=RECORDED.get(arm.name, arm.settings)) for arm in study.arm),
        contrast=tuple(
            each for each in study.contrast if each.confirmatory or (is_recorded(each.a) and is_recorded(each.b))
        ),
    )


def main() -> None:
    """Replay, report, and keep the page and its figures packed."""
    with tempfile.TemporaryDirectory() as folder:
        finished = run_study(as_recorded(read_study(STUDIES / "quarry.toml", ["mode=replay"])), Path(folder) / "quarry")
        write_report(finished.folder)
        kept = REPORTS / "quarry"
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(finished.folder / "summary.json", kept / "summary.json")
        shutil.copy(finished.folder / "report" / "figures" / "headline.svg", kept / "headline.svg")
        page = (finished.folder / "report" / "index.html").read_bytes()
        (kept / "index.html.xz").write_bytes(lzma.compress(page, preset=9))
        print(f"{kept}: {', '.join(finished.left_out) or 'nothing'} left out")


if __name__ == "__main__":
    main()
