"""Result comparison: what makes a prediction right, and how to find out fast."""

from sqlcrystal.scoring.verdicts import DEFAULT_RULE, RULES, Group, Judgement, Kind, Report, Scored, compare, report_of

__all__ = ["DEFAULT_RULE", "RULES", "Group", "Judgement", "Kind", "Report", "Scored", "compare", "report_of"]
