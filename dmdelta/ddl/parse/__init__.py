"""Reading a DDL statement: which tables it names, and its clauses as records."""
