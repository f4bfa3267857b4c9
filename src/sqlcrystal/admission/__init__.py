"""Admission: which signal lets an episode become a card."""
