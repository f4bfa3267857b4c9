"""Language models behind one port: local, any OpenAI-compatible endpoint, scripted, recorded."""
