"""Retrieval: which cards a question sees, and the controls that tell why they help."""

from sqlcrystal.consumption.chance import Nothing, Random
from sqlcrystal.consumption.correspondence import KeptPair, Mispaired, Mispairing, derangement, mispair
from sqlcrystal.consumption.crossing import Foreign, SchemaSimilar
from sqlcrystal.consumption.dense import Dense, Mmr, Payload
from sqlcrystal.consumption.indexed import Indexed
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.consumption.memory import BankMemory, CardOrder, NoMemory
from sqlcrystal.consumption.selection import own_cards
from sqlcrystal.consumption.subsampling import counts_of, fraction, matched
from sqlcrystal.consumption.vectors import Vectors

__all__ = [
    "BankMemory",
    "Bm25",
    "CardOrder",
    "Dense",
    "Foreign",
    "Indexed",
    "KeptPair",
    "Mispaired",
    "Mispairing",
    "Mmr",
    "NoMemory",
    "Nothing",
    "Payload",
    "Random",
    "SchemaSimilar",
    "Vectors",
    "counts_of",
    "derangement",
    "fraction",
    "matched",
    "mispair",
    "own_cards",
]
