"""Name → implementation tables; the only registry."""
