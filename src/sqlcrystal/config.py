"""Settings and study files as frozen, validated objects."""
