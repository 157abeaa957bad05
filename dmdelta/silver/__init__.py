"""Silver: one typed Delta table per source table, at every commit exactly the source table at one position.

Reads bronze only, by position; compacts row changes per key; picks append, replace, delete or MERGE; follows ADD
COLUMN; guards every row by the version of the event that wrote it. All of it is Spark SQL on bronze: no row passes
through Python. Knows nothing of binlogs, of checkpoints or of how a task runs.
"""
