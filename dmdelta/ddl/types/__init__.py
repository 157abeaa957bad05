"""Column types: what silver makes of each, and what becomes of values when a column changes its type."""
