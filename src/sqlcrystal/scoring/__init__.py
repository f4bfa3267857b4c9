"""Result comparison: what makes a prediction right, and how to find out fast."""

from sqlcrystal.scoring.report import Group, Report, Scored, report_of
from sqlcrystal.scoring.verdicts import DEFAULT_RULE, RULES, Judgement, Kind, compare

__all__ = ["DEFAULT_RULE", "RULES", "Group", "Judgement", "Kind", "Report", "Scored", "compare", "report_of"]
