"""Compares silver with the source: whole tables by a command, changed rows by the validator of a running task."""
