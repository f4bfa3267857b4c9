"""How much memory the process of a test has held at most."""

import resource
from contextlib import suppress
from pathlib import Path


def peak_megabytes() -> int:
    """This process's own peak: `ru_maxrss` of a started program begins at the size of the one that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) // 1024


def forget_the_peak() -> None:
    """Let the peak count from now on; where the system cannot, growth below the old peak goes unseen."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_megabytes_of_children() -> int:
    """The largest peak among the children that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
