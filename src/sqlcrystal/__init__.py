"""Text-to-SQL that keeps what its repairs teach it, and measures honestly what that is worth."""

__version__ = "0.1.0"
