"""The bounds of the number types, and SQL that keeps a value within them."""

from dmdelta.model.schema import Column

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
MAX_FLOAT, MAX_DOUBLE = "3.4028234663852886E38", "1.7976931348623157E308"
_MAX_YEAR = 2155


def integer_bounds(column: Column) -> tuple[int, int]:
    """The minimum and maximum of an integer type, BIT or YEAR."""
    if column.type == "bit":
        return 0, (1 << column.length) - 1
    if column.type == "year":
        return 0, _MAX_YEAR
    bits = INTEGER_BITS[column.type]
    return (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def decimal_bounds(column: Column) -> tuple[str, str]:
    """The minimum and maximum of a DECIMAL."""
    nines = "9" * (column.precision - column.scale) or "0"
    high = f"{nines}.{'9' * column.scale}" if column.scale else nines
    return "0" if column.unsigned else f"-{high}", high


def within(value: str, low: str, high: str, kind: str) -> str:
    """SQL: a number cast to a silver type and clamped to its bounds, as servers in non-strict mode do."""
    return (
        f"CASE WHEN {value} <= {low} THEN CAST('{low}' AS {kind}) WHEN {value} >= {high} THEN CAST('{high}' AS {kind})"
        f" ELSE CAST({value} AS {kind}) END"
    )
