"""MySQL's expressions in Spark SQL: one module per kind of value and its operations.

Only node types of sqlglot on an allow-list are translated, those that give the same result for every row; all others
raise `Refusal`. No expression may fail on a row: where MySQL's statement would fail (an overflow), the value is NULL.
"""
