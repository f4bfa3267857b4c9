"""The study files that come with the package, each with its recording beside it."""

from pathlib import Path

from sqlcrystal.errors import DataError

_PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (_PACKAGE / "studies", _PACKAGE.parent.parent / "studies")
"""Where they lie in an installed package, and in a checkout."""


def study_path(named: Path) -> Path:
    """The file itself, or the bundled study of that name, for a bare name that is no file here."""
    if named.exists() or named.suffix or len(named.parts) != 1:
        return named
    names = bundled_studies()
    if named.name not in names:
        raise DataError(f"study {named}: no such file, and no bundled study; choose from {', '.join(names)}")
    return names[named.name]


def bundled_studies() -> dict[str, Path]:
    """Name and file of every bundled study."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    return {file.stem: file for file in sorted(folder.glob("*.toml"))} if folder else {}
