"""`dmdelta quality`: evaluates the suites of tables, and releases quarantined rows."""
