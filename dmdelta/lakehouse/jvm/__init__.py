"""The JVM of a local session: its options, its output, and the cancellation of its jobs."""
