"""The command line: each command parses, calls one function and prints."""

import sys

import typer

from sqlcrystal.errors import SqlcrystalError, UserError

app = typer.Typer(
    name="sqlcrystal",
    help="Text-to-SQL that keeps what its repairs teach it, and measures what that is worth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def register() -> None:
    """Attach every command; each line is one command or group."""
    from sqlcrystal.interfaces.cli import benchmark, cards, compare, model, power, recording, report, score, study

    score.register(app)
    benchmark.register(app)
    compare.register(app)
    power.register(app)
    model.register(app)
    recording.register(app)
    study.register(app)
    report.register(study.study_app)
    cards.register(app)


def main() -> None:
    """Run the command line; a user's mistake is one line and exit 2, the world's is exit 1, a bug its traceback."""
    register()
    try:
        app()
    except UserError as error:
        print(f"sqlcrystal: {error}", file=sys.stderr)
        sys.exit(2)
    except SqlcrystalError as error:
        print(f"sqlcrystal: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
