"""The JVM of a local session: its options, its early start, its output, and the cancellation of its jobs."""
