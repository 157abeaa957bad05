"""Compares two tables by sums over buckets, then row by row in differing buckets: pure decisions and data frames.

A bucket has the rows whose keys share a hash, so both sides find its rows without a common order of keys.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.quality.canonical import Sides, bucket, canonical, is_comparable, row_hash, value_text
from dmdelta.quality.json_compare import same_text

BUCKET_ROWS = 1_000
BUCKETS = (16, 1 << 14)
"""Minimum and maximum number of buckets."""
MAX_ROWS = 500_000
"""Maximum number of rows in differing buckets that are compared one by one: one process holds them for each side."""

Sums = Mapping[int, tuple[int, int]]
"""Row count and sum of the rows' hashes, by bucket."""
HashedRow = tuple[str, int, int]
"""A row's key and hash, and whether it is excluded from the comparison."""


class Kind(str, Enum):
    """How a row differs."""

    MISSING = "missing"
    """Only the source has it."""
    EXTRA = "extra"
    """Only silver has it, or silver has it more often."""
    DIFFERENT = "different"
    """A value differs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The columns of a table that are compared, and the SQL of both sides.

    Attributes:
        key: the columns that identify rows; all columns for a table without a key.
        left_out: the condition of the rows that are not compared, never NULL; None: all rows are compared.
        absent: silver's columns of other shards, which are NULL in the table's rows.
    """

    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    flavor: Flavor
    buckets: int
    left_out: Sides | None = None
    absent: tuple[str, ...] = ()

    @property
    def key_text(self) -> Sides:
        return canonical(self.key, self.flavor)

    @property
    def hash(self) -> Sides:
        text = canonical(self.columns, self.flavor)
        if not self.absent:
            return row_hash(text)
        filled = " OR ".join(f"{quote(name)} IS NOT NULL" for name in self.absent)
        return row_hash(Sides(text.source, f"concat({text.silver}, IF({filled}, '|+', ''))"))

    @property
    def bucket(self) -> Sides:
        return bucket(self.key_text, self.buckets)

    def values(self) -> list[tuple[str, Sides]]:
        """The name and text of each column."""
        own = [(column.name, value_text(column, self.flavor)) for column in self.columns]
        return own + [(name, Sides("'~'", f"IF({quote(name)} IS NULL, '~', '(a value)')")) for name in self.absent]

    def source_where(self, *conditions: str) -> str:
        """The WHERE clause (SQL) of the compared rows of the source that meet the conditions; '' for all rows."""
        return _where(*conditions, f"NOT ({self.left_out.source})" if self.left_out else "")


def plan_comparison(
    schema: TableSchema,
    existing: Iterable[str],
    flavor: Flavor,
    rows: int,
    *,
    left_out: Sides | None = None,
    absent: tuple[str, ...] = (),
) -> Comparison:
    """Plan how a table is compared.

    Args:
        existing: silver's columns.
        rows: approximate number of rows in the source.
        left_out, absent: as in `Comparison`.
    """
    names = set(existing)
    columns = tuple(column for column in schema.columns if column.name in names and is_comparable(column))
    key = tuple(column for name in schema.primary_key for column in columns if column.name == name)
    least, most = BUCKETS
    buckets = min(max(least, rows // BUCKET_ROWS), most)
    whole = bool(key) and len(key) == len(schema.primary_key)
    return Comparison(columns, key if whole else columns, flavor, buckets, left_out, absent)


def source_sums_query(comparison: Comparison, table: str, condition: str) -> str:
    """The sums of a part of the source table, in the source's SQL."""
    sums = f"{comparison.bucket.source} AS b, COUNT(*), SUM({comparison.hash.source})"
    return f"SELECT {sums} FROM {table}{comparison.source_where(condition)} GROUP BY b"


def source_rows_query(comparison: Comparison, table: str, condition: str, buckets: Sequence[int]) -> str:
    """Key, hash, and whether it is excluded (1 or 0), for the rows of some buckets in a part of the source table."""
    within = f"{comparison.bucket.source} IN ({', '.join(map(str, buckets))})"
    left_out = f"IF({comparison.left_out.source}, 1, 0)" if comparison.left_out else "0"
    chosen = f"{comparison.key_text.source}, {comparison.hash.source}, {left_out}"
    return f"SELECT {chosen} FROM {table}{_where(condition, within)}"


def source_values_query(comparison: Comparison, table: str, condition: str, keys: Sequence[str]) -> str:
    """Key and text of each column, for the rows of some keys in a part of the source table; arguments are the keys."""
    values = ", ".join(side.source for _, side in comparison.values())
    where = f"({condition}) AND {comparison.key_text.source}" if condition else comparison.key_text.source
    query = f"SELECT {comparison.key_text.source}, {values} FROM {table} WHERE {where} IN"
    return f"{query.replace('%', '%%')} ({', '.join(['%s'] * len(keys))})"


def source_documents_query(comparison: Comparison, documents: Sequence[Column], table: str, condition: str) -> str:
    """Key and JSON documents as text, for a part of the source table."""
    texts = ", ".join(f"CAST({quote(column.name)} AS CHAR)" for column in documents)
    return f"SELECT {comparison.key_text.source}, {texts} FROM {table}{comparison.source_where(condition)}"


def count_query(table: str, *conditions: str) -> str:
    """The number of rows of a source table that meet the conditions; '' means no condition."""
    return f"SELECT COUNT(*) FROM {table}{_where(*conditions)}"


def _where(*conditions: str) -> str:
    """The WHERE clause (SQL) of conditions, ignoring empty ones; '' for all rows."""
    joined = " AND ".join(f"({condition})" for condition in conditions if condition)
    return f" WHERE {joined}" if joined else ""


def differing_documents(
    comparison: Comparison, documents: Sequence[Column], rows: DataFrame, source_rows: Sequence[Sequence[str | None]]
) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """The differing documents, by key and column: the source's text and silver's. Spark filters out most equal ones.

    Args:
        source_rows: the result of `source_documents_query`.
    """
    if not source_rows:
        return {}
    spark = rows.sparkSession
    names = [f"d{number}" for number in range(len(documents))]
    source = spark.createDataFrame(
        [tuple(row) for row in source_rows], ", ".join(f"{name} STRING" for name in ("k", *names))
    )
    texts = [f"to_json({quote(column.name)}) AS t{number}" for number, column in enumerate(documents)]
    silver = rows.selectExpr(f"{comparison.key_text.silver} AS k", *texts)
    unlike = " OR ".join(f"NOT (to_json(try_parse_json(d{n})) <=> t{n})" for n in range(len(documents)))
    documents_by_key: dict[str, dict[str, tuple[str | None, str | None]]] = {}
    for row in source.join(silver, "k").where(unlike).collect():
        values = {column.name: (row[f"d{n}"], row[f"t{n}"]) for n, column in enumerate(documents)}
        differing = {name: pair for name, pair in values.items() if not same_text(*pair)}
        if differing:
            documents_by_key[row["k"]] = differing
    return documents_by_key


def silver_sums(comparison: Comparison, rows: DataFrame) -> Sums:
    """The sums of a silver table."""
    if comparison.left_out:
        rows = rows.where(f"NOT ({comparison.left_out.silver})")
    chosen = rows.selectExpr(f"{comparison.bucket.silver} AS b", f"{comparison.hash.silver} AS h")
    found = chosen.groupBy("b").agg({"*": "count", "h": "sum"}).collect()
    return {int(row["b"]): (int(row["count(1)"]), int(row["sum(h)"])) for row in found}


def silver_hashes(comparison: Comparison, rows: DataFrame, buckets: Sequence[int]) -> list[HashedRow]:
    """Key and hash of silver's rows in some buckets."""
    chosen = rows.where(f"{comparison.bucket.silver} IN ({', '.join(map(str, buckets))})")
    left_out = comparison.left_out.silver if comparison.left_out else "false"
    texts = (f"{comparison.key_text.silver} AS k", f"{comparison.hash.silver} AS h", f"{left_out} AS l")
    return [(row["k"], int(row["h"]), row["l"]) for row in chosen.selectExpr(*texts).collect()]


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Key and hash of the compared rows, for both sides.

    Attributes:
        outdated: number of silver's rows that are not compared although the filter does not exclude them.
    """

    source: Sequence[tuple[str, int]]
    silver: Sequence[tuple[str, int]]
    outdated: int


def compared_rows(source: Iterable[HashedRow], silver: Iterable[HashedRow]) -> ComparedRows:
    """Select the rows that are compared.

    If the filter excludes the source's row of a key, silver may have any row or none. If it does not, silver must have
    the row, even if the filter excludes silver's row.
    """
    rows, others = list(source), list(silver)
    wanted = [(key, value) for key, value, left_out in rows if not left_out]
    known = {key for key, _ in wanted}
    uncertain = {key for key, _, left_out in rows if left_out} - known
    found = [(key, value) for key, value, left_out in others if key in known or not (left_out or key in uncertain)]
    return ComparedRows(wanted, found, sum(key in uncertain and not left_out for key, _, left_out in others))


def silver_values(comparison: Comparison, rows: DataFrame, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The text of each column of silver's rows, by key."""
    if not keys:
        return {}
    among = f"{comparison.key_text.silver} IN ({', '.join(map(literal, keys))})"
    texts = [f"{side.silver} AS v{number}" for number, (_, side) in enumerate(comparison.values())]
    found = rows.where(among).selectExpr(f"{comparison.key_text.silver} AS k", *texts).collect()
    return {row["k"]: tuple(row)[1:] for row in found}


def add_sums(parts: Iterable[Iterable[tuple[int, int, int]]]) -> Sums:
    """Add the sums of a table's parts."""
    sums: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for part in parts:
        for number, count, total in part:
            before = sums[number]
            sums[number] = (before[0] + count, before[1] + int(total))
    return dict(sums)


@dataclass(frozen=True, slots=True)
class Suspects:
    """The differing buckets.

    Attributes:
        buckets: those whose rows are compared one by one.
        left: number of the others, which exceed `MAX_ROWS`.
    """

    buckets: tuple[int, ...]
    left: int = 0


def plan_suspects(source: Sums, silver: Sums, max_rows: int = MAX_ROWS) -> Suspects:
    """Select the buckets that are compared row by row."""
    nothing = (0, 0)
    differing = sorted(
        number for number in {*source, *silver} if source.get(number, nothing) != silver.get(number, nothing)
    )
    chosen: list[int] = []
    rows = 0
    for number in differing:
        rows += max(source.get(number, nothing)[0], silver.get(number, nothing)[0])
        if chosen and rows > max_rows:
            break
        chosen.append(number)
    return Suspects(tuple(chosen), len(differing) - len(chosen))


def differing_rows(source: Iterable[tuple[str, int]], silver: Iterable[tuple[str, int]]) -> dict[str, Kind]:
    """How the rows of a bucket differ, by key."""
    wanted: dict[str, Counter[int]] = defaultdict(Counter)
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for sides, rows in ((wanted, source), (found, silver)):
        for key, value in rows:
            sides[key][int(value)] += 1
    kinds: dict[str, Kind] = {}
    for key in {*wanted, *found}:
        left, right = wanted[key], found[key]
        if left == right:
            continue
        if right.total() > left.total():
            kinds[key] = Kind.EXTRA
        else:
            kinds[key] = Kind.MISSING if left.total() > right.total() else Kind.DIFFERENT
    return dict(sorted(kinds.items()))
