"""A table's past: its lineage in bronze, positions in the log, and earlier states of its rows."""
