"""Retrieval: which cards a question sees, and the controls that tell why they help.

Names are loaded when they are first asked for: a question over a bank without cards needs no vectors.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use

if TYPE_CHECKING:
    from sqlcrystal.consumption.chance import Nothing, Random
    from sqlcrystal.consumption.correspondence import KeptPair, Mispaired, Mispairing, derangement, mispair
    from sqlcrystal.consumption.crossing import Foreign, SchemaSimilar
    from sqlcrystal.consumption.dense import Dense, Mmr, Payload
    from sqlcrystal.consumption.indexed import Indexed
    from sqlcrystal.consumption.lexical import Bm25
    from sqlcrystal.consumption.memory import BankMemory, CardOrder, NoMemory, own_cards
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

__getattr__ = on_first_use(
    __name__,
    {
        "chance": ("Nothing", "Random"),
        "correspondence": ("KeptPair", "Mispaired", "Mispairing", "derangement", "mispair"),
        "crossing": ("Foreign", "SchemaSimilar"),
        "dense": ("Dense", "Mmr", "Payload"),
        "indexed": ("Indexed",),
        "lexical": ("Bm25",),
        "memory": ("BankMemory", "CardOrder", "NoMemory", "own_cards"),
        "subsampling": ("counts_of", "fraction", "matched"),
        "vectors": ("Vectors",),
    },
)
