"""The history of a table: its lineage in bronze, positions in the log, and earlier states of its rows."""
