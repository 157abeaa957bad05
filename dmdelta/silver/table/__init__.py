"""A silver table: where it is, how it is made, and how far it is."""
