"""The nouns that every stage shares: positions, GTID sets, table schemas, segments, change operations.

Frozen values without I/O. Knows nothing of Spark, of files' content or of the network.
"""
