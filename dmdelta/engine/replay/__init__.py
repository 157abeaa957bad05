"""`dmdelta replay`: a range of a table's log applied again, checked, and written to its place."""
