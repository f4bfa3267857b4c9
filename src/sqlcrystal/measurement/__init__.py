"""What the bank is worth: the three settings kept apart, the ratio, and honest statistics."""
