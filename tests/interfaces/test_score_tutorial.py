"""The tutorial of `score` runs as it is written, on an install of what it says."""

import re
import subprocess
from pathlib import Path

from fresh_install import environment_of, named_extras

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "score.md"


def test_the_first_section_of_the_tutorial_runs_and_ends_at_50_percent(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## A published benchmark")[0]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.S))
    environment = environment_of(named_extras(section), tmp_path / "cache")
    done = subprocess.run(
        ["bash", "-e"],
        input=script,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"accuracy": 50.0' in done.stdout
    assert (
        (tmp_path / "verdicts.csv")
        .read_text()
        .startswith("question_id,database,verdict,kind,seconds,sql,error\nq1,zoo,1,match,")
    )
