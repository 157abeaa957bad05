"""The target server: connections, the sink's own tables and the target's tables."""
