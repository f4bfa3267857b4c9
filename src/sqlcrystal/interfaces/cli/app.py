"""The command line: each command parses, calls one function and prints."""

import gc
import sys
from typing import TYPE_CHECKING, Annotated

from sqlcrystal.databases import accept_privileged
from sqlcrystal.errors import SqlcrystalError, UserError
from sqlcrystal.escaping import visible

if TYPE_CHECKING:
    import typer

ALLOW_PRIVILEGED = "--allow-privileged"


def command_line() -> "typer.Typer":
    """Every command; each line is one command or group."""
    import typer

    from sqlcrystal.interfaces.cli import (
        ask,
        benchmark,
        cards,
        compare,
        init,
        model,
        power,
        recording,
        report,
        score,
        serve,
        study,
        token,
        value,
    )

    app = typer.Typer(
        name="sqlcrystal",
        help="Text-to-SQL that keeps what its repairs teach it, and measures what that is worth.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
        ] = False,
        allow_privileged: Annotated[
            bool,
            typer.Option(
                ALLOW_PRIVILEGED, help="Open servers with accounts that may do more than read, in any command."
            ),
        ] = False,
    ) -> None:
        """Text-to-SQL that keeps what its repairs teach it, and measures what that is worth."""

    init.register(app)
    ask.register(app)
    score.register(app)
    benchmark.register(app)
    compare.register(app)
    power.register(app)
    model.register(app)
    recording.register(app)
    study.register(app)
    report.register(study.study_app)
    cards.register(app)
    serve.register(app)
    token.register(app)
    value.register(app)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        from sqlcrystal.version import __version__

        print(f"sqlcrystal {__version__}")
        sys.exit(0)


def main() -> None:
    """Run the command line; a user's mistake is one line and exit 2, the world's is exit 1, a bug its traceback."""
    try:
        _run(_noting_privilege(sys.argv[1:]))
    except UserError as error:
        print(f"sqlcrystal: {visible(str(error))}", file=sys.stderr)
        sys.exit(2)
    except SqlcrystalError as error:
        print(f"sqlcrystal: {visible(str(error))}", file=sys.stderr)
        sys.exit(1)


def _noting_privilege(arguments: list[str]) -> list[str]:
    """Take out of the arguments the one flag that any command takes, and follow it."""
    if ALLOW_PRIVILEGED not in arguments:
        return arguments
    accept_privileged()
    sys.argv.remove(ALLOW_PRIVILEGED)
    return [argument for argument in arguments if argument != ALLOW_PRIVILEGED]


def _run(arguments: list[str]) -> None:
    """Run `score` and `ask` by themselves where their arguments are plain: loading the library takes long."""
    if arguments[:1] in (["score"], ["ask"]):
        gc.set_threshold(50_000)  # a short life makes little garbage and many small objects
    if arguments[:1] == ["score"]:
        from sqlcrystal.interfaces.cli.quick import quick_score

        settings = quick_score(arguments[1:])
        if settings is not None:
            _load_msgspec_alone()
            from sqlcrystal.interfaces.cli.scoring import score_files

            score_files(**settings)
            return
    if arguments[:1] == ["ask"]:
        from sqlcrystal.interfaces.cli.quick import quick_ask

        asked = quick_ask(arguments[1:])
        if asked is not None:
            from sqlcrystal.interfaces.cli.answering import answer_question

            answer_question(**asked)
            return
    if not arguments and sys.stdin.isatty():
        from sqlcrystal.interfaces.cli.loop import prompt_loop

        prompt_loop()
        return
    command_line()()


def _load_msgspec_alone() -> None:
    """Load msgspec without `typing_extensions`, of which it takes names that Python has had since 3.11.

    To load that package took 12 of the 470 ms of CPU in which a file is scored; whoever needs it later gets it.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


if __name__ == "__main__":
    main()
