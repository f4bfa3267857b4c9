"""The folder of a run: the ledger, the results, the logs; and the lock on writing there."""
