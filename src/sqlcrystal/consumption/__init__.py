"""Retrieval: which cards a question sees, and the controls that tell why they help."""
