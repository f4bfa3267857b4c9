"""The study room stays small: it is the loop, and what is not the loop has a room of its own."""

import ast
import io
import tokenize
from pathlib import Path

STUDY = Path(__file__).resolve().parents[1] / "src" / "sqlcrystal" / "study"
MOST_LINES = 1_000
SILENT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def lines_of_code(text: str) -> int:
    """Lines that hold code: not blank, no comment, no docstring."""
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in SILENT]
    code = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(code - docstring_lines(ast.parse(text)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of every string that stands for itself."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def test_lines_of_code_are_neither_blank_nor_comment_nor_docstring() -> None:
    text = '"""One.\n\nTwo.\n"""\n\n# why\nx = """a\nb"""\n\n\ndef f() -> int:\n    """Three."""\n    return 1  # one\n'
    assert lines_of_code(text) == 4


def test_the_study_without_its_report_has_at_most_a_thousand_lines_of_code() -> None:
    modules = [path for path in STUDY.rglob("*.py") if "report" not in path.relative_to(STUDY).parts]
    counted = {path.name: lines_of_code(path.read_text(encoding="utf-8")) for path in modules}
    assert sum(counted.values()) <= MOST_LINES, counted
