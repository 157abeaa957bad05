"""Delta tables: the Spark session, where tables are, idempotent commits and their history.

Owns every write to a Delta table and the one place that builds a SparkSession. A commit carries a `CommitTag` that
says which range of a source's log it stands for; what that range holds is not this package's business: it knows
nothing of binlogs, row changes or compaction, and runs the same over Spark Connect.
"""
