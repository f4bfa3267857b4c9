"""Questions about a query or a table that people ask: EXPLAIN without ANALYZE, DESCRIBE, SHOW and SUMMARIZE.

They run nothing, or no more than the query itself would. Models do not get them: a prediction is a query.
"""

import re

_PLAIN_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TABLE = rf"(?P<table>{_PLAIN_NAME}(?:\.{_PLAIN_NAME})?)"
_QUERY = r"(?P<query>(?:SELECT|WITH|VALUES|FROM|\().*)"
_OPTION = r"(?:COSTS|VERBOSE|SETTINGS|SUMMARY|GENERIC_PLAN|FORMAT)(?:\s+(?:ON|OFF|TRUE|FALSE|TEXT|JSON|YAML|XML))?"
_FORMS = {
    "sqlite": (rf"(?P<prefix>EXPLAIN(?:\s+QUERY\s+PLAN)?)\s+{_QUERY}",),
    "postgres": (
        rf"(?P<prefix>EXPLAIN(?:\s+VERBOSE|\s*\(\s*{_OPTION}(?:\s*,\s*{_OPTION})*\s*\))?)\s*(?<![A-Za-z]){_QUERY}",
        rf"(?P<prefix>SHOW\s+(?:TIME\s+ZONE|{_PLAIN_NAME}))",
    ),
    "mysql": (
        rf"(?P<prefix>(?:EXPLAIN|DESCRIBE|DESC)(?:\s+EXTENDED|\s+FORMAT\s*=\s*JSON)?)\s+{_QUERY}",
        rf"(?P<prefix>EXPLAIN|DESCRIBE|DESC)\s+{_TABLE}",
        rf"(?P<prefix>SHOW\s+(?:(?:FULL\s+)?(?:COLUMNS|FIELDS)|INDEX|INDEXES|KEYS)\s+(?:FROM|IN)|SHOW\s+CREATE\s+(?:TABLE|VIEW))"
        rf"\s+{_TABLE}",
        r"(?P<prefix>SHOW\s+(?:(?:FULL\s+)?TABLES|DATABASES|SCHEMAS|TABLE\s+STATUS|COLLATION|CHARACTER\s+SET)"
        r"(?:\s+LIKE\s+'[A-Za-z0-9_%]*')?|SHOW\s+WARNINGS)",
    ),
    "duckdb": (
        rf"(?P<prefix>EXPLAIN|DESCRIBE|SUMMARIZE)\s+{_QUERY}",
        r"(?P<prefix>SHOW\s+(?:ALL\s+)?TABLES|SHOW\s+DATABASES)",
        rf"(?P<prefix>DESCRIBE|SUMMARIZE|SHOW)\s+{_TABLE}",
    ),
}
_PATTERNS = {
    dialect: tuple(re.compile(form, re.DOTALL | re.IGNORECASE) for form in forms) for dialect, forms in _FORMS.items()
}


def split_inspection(sql: str, dialect: str) -> tuple[str, str, bool] | None:
    """What is asked, what about, and whether that is a query; None when the statement is no such question."""
    asked = sql.strip().removesuffix(";").rstrip()
    for pattern in _PATTERNS[dialect]:
        if match := pattern.fullmatch(asked):
            groups = match.groupdict()
            prefix = " ".join(groups["prefix"].split())
            return prefix, groups.get("query") or groups.get("table") or "", bool(groups.get("query"))
    return None
