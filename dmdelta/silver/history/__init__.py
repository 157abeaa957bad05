"""A table's past in bronze: its lineage, replays of it, repairs and reloads made from it."""
