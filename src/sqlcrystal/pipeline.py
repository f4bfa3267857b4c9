"""answer() and learn(): the one place where the stages meet."""
