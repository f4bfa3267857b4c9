"""What a study will cost and what it will be able to tell, before it is run."""
