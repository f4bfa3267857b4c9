"""Result comparison: what makes a prediction right, and how to find out fast."""

from sqlcrystal.scoring.report import Group, Report, Scored, report_of
from sqlcrystal.scoring.verdicts import DEFAULT_RULE, RULES, Kind, Verdict, compare

__all__ = ["DEFAULT_RULE", "RULES", "Group", "Kind", "Report", "Scored", "Verdict", "compare", "report_of"]
