"""The domain model that all stages share: positions, GTID sets, table schemas, segments, change operations.

Frozen values without I/O. Knows nothing of Spark, file contents or the network.
"""
