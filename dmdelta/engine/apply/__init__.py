"""Applies ranges of the log to silver: the loop, the scheduler, and the state of each table."""
