"""Queries that were run before: read from where teams keep them, refused with a reason, or told apart by shape."""
