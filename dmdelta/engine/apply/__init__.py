"""The applying loop: which tables of a range are written when, by whom, and in which state each table is."""
