"""Who carries units: threads of this process, or Ray workers; what a unit is, they need not know."""
