"""What a run counts and measures, and how Prometheus gets it."""
