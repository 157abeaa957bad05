"""`dmdelta verify`: compares bronze with the source's log, decoded by an independent library."""
