"""How bronze's rows are read, by all that reads them: ranges, XA groups, typed values, what the spec leaves out.

Owns the SQL of it. Must not know what is made of the rows: silver and the sink each have their own plans.
"""
