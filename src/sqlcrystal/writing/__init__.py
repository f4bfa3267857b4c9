"""Writing: what of an admitted episode becomes the text of a card."""
