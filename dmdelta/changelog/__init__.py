"""Reading bronze's rows: ranges, XA groups, typed values, and what the spec's filters leave of rows and statements.

Owns the SQL for it. Must not know what the rows are used for: silver and the sink have their own plans.
"""
