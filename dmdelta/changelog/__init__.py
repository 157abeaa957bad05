"""Reading bronze's rows: ranges, XA groups, typed values, and the spec's row filters.

Owns the SQL for it. Must not know what the rows are used for: silver and the sink have their own plans.
"""
