"""Reads bronze for the sink: slices of a range, and their rows as literals of the target."""
