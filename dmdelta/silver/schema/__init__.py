"""What a range of bronze does to the structure of a table, and the plan by which silver follows."""
