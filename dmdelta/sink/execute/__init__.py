"""From changes to transactions on the target: compaction, causality, workers and the flusher."""
