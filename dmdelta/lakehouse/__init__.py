"""Delta tables: the Spark session, the location of tables, idempotent commits and their history.

Owns every write to a Delta table and the only place that builds a SparkSession. A commit carries a `CommitTag` with the
range of a source's log that it represents; this package does not know the content of that range: it knows nothing of
binlogs, row changes or compaction, and also runs over Spark Connect.
"""
