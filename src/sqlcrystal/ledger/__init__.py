"""What a run writes into its folder: the ledger, the results, the logs; and who may write there."""
