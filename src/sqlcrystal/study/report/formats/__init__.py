"""How a report is written down: one template per output format, none of which computes anything."""
