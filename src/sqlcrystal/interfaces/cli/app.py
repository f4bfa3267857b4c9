"""The command line's entry: runs one command, and turns errors into one line and an exit code."""

import gc
import os
import sys

from sqlcrystal.databases import PRIVILEGED_VARIABLE
from sqlcrystal.errors import SqlcrystalError, UserError
from sqlcrystal.outgoing import visible

ALLOW_PRIVILEGED = "--allow-privileged"


def main() -> None:
    """Run the command line; a user's mistake is one line and exit 2, the world's is exit 1, a bug its traceback."""
    if sys.argv[1:2] in (["score"], ["ask"]):
        gc.set_threshold(50_000)  # a short life makes little garbage and many small objects
    try:
        _run(_noting_privilege(sys.argv[1:]))
    except UserError as error:
        print(f"sqlcrystal: {visible(str(error))}", file=sys.stderr)
        sys.exit(2)
    except SqlcrystalError as error:
        print(f"sqlcrystal: {visible(str(error))}", file=sys.stderr)
        sys.exit(1)


def _run(arguments: list[str]) -> None:
    """Run the prompt without arguments, `score` by itself where its arguments are plain, and else the tree."""
    if not arguments and sys.stdin.isatty():
        from sqlcrystal.interfaces.cli.loop import prompt_loop

        prompt_loop()
        return
    if arguments[:1] == ["score"]:
        from sqlcrystal.interfaces.cli.scoring import quick_score, score_files

        settings = quick_score(arguments[1:])
        if settings is not None:
            score_files(**settings)
            return
    from sqlcrystal.interfaces.cli.tree import app

    app(arguments)


def _noting_privilege(arguments: list[str]) -> list[str]:
    """Take out the one flag that every command takes at any place; workers see it in the environment."""
    if ALLOW_PRIVILEGED not in arguments:
        return arguments
    os.environ[PRIVILEGED_VARIABLE] = "1"
    return [argument for argument in arguments if argument != ALLOW_PRIVILEGED]


if __name__ == "__main__":
    main()
