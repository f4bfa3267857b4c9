"""The worth of the bank: the three settings kept apart, the ratio, and honest statistics."""
