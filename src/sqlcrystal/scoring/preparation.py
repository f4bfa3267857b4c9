"""What a rule does to SQL before it runs: nothing, except that Spider's rule rewrites both sides."""

import re

from sqlcrystal.scoring.tokens import without_distinct

_CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def prepare_gold(sql: str, rule: str) -> str:
    """Gold as the rule executes it."""
    return _as_spider_does(sql) if rule == "test-suite" else sql


def prepare_prediction(sql: str, rule: str) -> str:
    """A prediction as the rule executes it; Spider also fills a lone `value` slot with 1."""
    return _as_spider_does(sql.replace(" value ", " 1 ")) if rule == "test-suite" else sql


def _as_spider_does(sql: str) -> str:
    """Join split operators, drop DISTINCT, and read the current year as 2020."""
    joined = sql.replace("> =", ">=").replace("< =", "<=").replace("! =", "!=")
    return _CURRENT_YEAR.sub("2020", without_distinct(joined))
