"""Writing: from an admitted episode to the text of a card."""
