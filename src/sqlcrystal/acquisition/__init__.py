"""Acquisition: how test-time computation becomes an episode."""
