"""`dmdelta replay`: applies a range of a table's log again, checks the result, and writes it."""
