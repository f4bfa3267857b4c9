"""The command line's entry: runs one command, and turns errors into one line and an exit code."""

import gc
import sys

from sqlcrystal.databases import accept_privileged
from sqlcrystal.errors import SqlcrystalError, UserError
from sqlcrystal.escaping import visible

ALLOW_PRIVILEGED = "--allow-privileged"


def main() -> None:
    """Run the command line; a user's mistake is one line and exit 2, the world's is exit 1, a bug its traceback."""
    if sys.argv[1:2] in (["score"], ["ask"]):
        gc.set_threshold(50_000)  # a short life makes little garbage and many small objects
    try:
        _run(_noting_privilege(sys.argv[1:]))
    except UserError as error:
        print(f"sqlcrystal: {visible(error.line)}", file=sys.stderr)
        sys.exit(2)
    except SqlcrystalError as error:
        print(f"sqlcrystal: {visible(error.line)}", file=sys.stderr)
        sys.exit(1)


def _noting_privilege(arguments: list[str]) -> list[str]:
    """Take out of the arguments the one flag that any command takes, and follow it."""
    if ALLOW_PRIVILEGED not in arguments:
        return arguments
    accept_privileged()
    sys.argv.remove(ALLOW_PRIVILEGED)
    return [argument for argument in arguments if argument != ALLOW_PRIVILEGED]


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


if __name__ == "__main__":
    main()
