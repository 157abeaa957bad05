"""Compaction, VACUUM and retention: by a running task, and by a command."""
