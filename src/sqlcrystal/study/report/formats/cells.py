"""The cells of a table as every format needs them."""

import re

from sqlcrystal.study.report.table import ReportTable

NUMERIC = re.compile(r"[+−<]?[\d.,]+( ?%| ?pp|M|K|×)?|—|[+−]?[\d.,]+( ?/ ?[+−]?[\d.,]+)+")


def numeric_columns(table: ReportTable) -> tuple[bool, ...]:
    """Tell which columns hold figures and are set flush right."""
    body = [row for row in table.rows if len(row) == len(table.columns)]
    return tuple(
        bool(body) and all(NUMERIC.fullmatch(row[index]) or not row[index] for row in body)
        for index in range(len(table.columns))
    )
