"""The relay: a source's log as segments on disk, written by a process of its own, and their purge."""
