"""MySQL's expressions as Spark's: one module for each kind of value and what can be done with it.

Only what gives the same answer for every row is translated, by an allow-list of sqlglot's node types; all else raises
`Refusal`. No expression may fail on a row: where MySQL's statement would (an overflow), the value is NULL.
"""
