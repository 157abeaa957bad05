"""The rows of one batch: compaction, the choice of a strategy, and the commits that carry it out."""
