"""The optional sink: bronze's changes, in order per source, executed on a MySQL, MariaDB or TiDB server.

Owns the way of DM's syncer (compactor, causality, merger, workers), the target's `dm_meta` tables and the proof of what
was executed. Must not know how changes came to bronze, nor silver: trouble here stops neither.
"""
