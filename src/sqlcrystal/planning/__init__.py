"""The cost and the power of a study, before it is run."""
