"""Solving: the prompt, the one call, and the SQL taken from its reply."""
