"""The version, in the one place where it is written; the package's metadata is read from here."""

__version__ = "0.2.0"
