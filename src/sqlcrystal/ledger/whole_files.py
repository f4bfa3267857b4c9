"""Files that a reader finds whole or not at all, whenever the writer is killed."""

from pathlib import Path


def write_whole(path: Path, content: bytes) -> Path:
    """Write beside the file first, then take its place in one step."""
    fresh = path.with_name(path.name + ".tmp")
    fresh.write_bytes(content)
    fresh.replace(path)
    return path
