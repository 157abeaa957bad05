"""Live reads: the state of a table after a range of the log, as a query that writes nothing."""
