"""Maintenance of tables: compaction, VACUUM, short logs, and the positions that outlast them."""
