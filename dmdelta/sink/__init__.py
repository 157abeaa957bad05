"""The optional sink: bronze's changes, in order per source, executed on a MySQL, MariaDB or TiDB server.

Owns the pipeline of DM's syncer (compactor, causality, merger, workers), the target's `dm_meta` tables and the records
of what was executed. Must not know how changes reach bronze, nor silver: a failure here stops neither.
"""
