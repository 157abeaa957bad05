"""Commands that only read: status, events and the checks before a run."""
