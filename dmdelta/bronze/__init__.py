"""Bronze: every row change of every source, append-only, in one Delta table.

Owns the Spark data source `mysql_binlog` (segments in, decoded rows out, on the executors) and landing, which binds
each batch of segments to one commit. Knows nothing of silver: everything after bronze can be rebuilt from it.
"""
