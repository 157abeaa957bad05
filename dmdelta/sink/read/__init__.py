"""Bronze read for the sink: slices of a range, and the rows of a slice as the target's literals."""
