"""Silver: one typed Delta table per source table, equal to the source table at one position after each completed range.

Silver reads ranges of bronze by position, compacts row changes per key, and writes them with append, replace, delete or
MERGE. It applies DDL statements to the silver table, and checks every row's version before it overwrites the row.
Everything is Spark SQL on bronze: no row passes through Python. The package does not depend on binlogs, checkpoints or
the run loop.
"""
