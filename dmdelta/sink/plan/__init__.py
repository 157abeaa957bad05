"""Pure decisions of the sink: how a table maps to the target's, what a statement becomes there, the SQL of both."""
