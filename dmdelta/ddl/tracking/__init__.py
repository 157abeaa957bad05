"""The structures of tables from statement to statement, and a statement's effects on them."""
