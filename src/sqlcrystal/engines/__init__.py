"""Worker pools that carry the units of a study: threads of this process, or Ray workers."""
