"""The JVM of a local session while it runs: its output, and the jobs that are cancelled."""
