"""What `sqlcrystal ask` does, without the library that reads its arguments."""

import os
import sys

from sqlcrystal.interfaces.cli.answer_pages import answer_lines, offer_lines, trace_lines
from sqlcrystal.interfaces.cli.crystal_access import opened_crystal, read_question, ready_model
from sqlcrystal.interfaces.cli.output import print_json


def answer_question(
    question: str,
    *,
    db: str | None = None,
    name: str | None = None,
    model: str | None = None,
    api_key_env: str | None = None,
    by: str = "",
    memory: bool | None = None,
    replay: bool = False,
    trace: bool = False,
    rows: int = 20,
    store: str | None = None,
    json: bool = False,
) -> None:
    """Answer and print; exit 1 when there is no SQL that runs."""
    text = read_question(question)
    with opened_crystal(
        store or os.environ.get("SQLCRYSTAL_STORE"),
        db=db,
        name=name,
        model=model or os.environ.get("SQLCRYSTAL_MODEL"),
        api_key_env=api_key_env,
        replay=replay,
    ) as (crystal, database):
        ready_model(crystal.workspace.team.model)
        answer = crystal.ask(text, database, by=by, memory=memory)
        prices = crystal.workspace.team.prices
    if json:
        print_json(answer.document(trace=trace))
    else:
        tried = trace_lines(answer) if trace else ()
        for line in (*tried, *answer_lines(answer, rows=rows, prices=prices), *offer_lines(answer)):
            print(line)
    if answer.error:
        sys.exit(1)
