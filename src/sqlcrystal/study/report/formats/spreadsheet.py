"""Tables as CSV for spreadsheets."""

import csv
import io

from sqlcrystal.escaping import csv_cell
from sqlcrystal.study.report.table import ReportTable


def to_csv(table: ReportTable) -> str:
    """Comma-separated, figures with an ASCII minus so that a spreadsheet reads them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([[csv_cell(cell.replace("−", "-")) for cell in row] for row in table.rows])
    return out.getvalue()
