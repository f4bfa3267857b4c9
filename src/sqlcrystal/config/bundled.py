"""The study files that come with the package, each with its recording beside it."""

from pathlib import Path

from sqlcrystal.errors import DataError

KEPT_STUDY = "study.json"
"""The name under which a run's folder keeps its study."""
_PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (_PACKAGE / "studies", _PACKAGE.parent.parent / "studies")
"""Where they lie in an installed package, and in a checkout."""


def study_path(study: Path) -> Path:
    """Find the file itself, the study that a run's folder keeps, or the bundled study of a bare name."""
    if (run_copy := study / KEPT_STUDY).is_file():
        return run_copy
    if study.is_file() or study.suffix or len(study.parts) != 1:
        return study
    names = bundled_studies()
    if study.name not in names:
        raise DataError(f"study {study}: no such file, and no bundled study; choose from {', '.join(names)}")
    return names[study.name]


def bundled_studies() -> dict[str, Path]:
    """Name and file of every bundled study."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    return {file.stem: file for file in sorted(folder.glob("*.toml"))} if folder else {}
