"""Benchmarks: questions with gold, where their databases are, and how predictions on them score."""
