"""Solving: the prompt, the one call, and the SQL taken from its reply."""

from sqlcrystal.solving.extract import extract_blocks, extract_sql
from sqlcrystal.solving.presentation import Presenter, described_schema
from sqlcrystal.solving.prompt import build_prompt
from sqlcrystal.solving.solver import ChainOfThought, SingleShot

__all__ = [
    "ChainOfThought",
    "Presenter",
    "SingleShot",
    "build_prompt",
    "described_schema",
    "extract_blocks",
    "extract_sql",
]
