"""The report: every table, figure and sentence of the paper, generated from a ledger and nothing else."""
