"""Compares rows with known keys on both sides: builds the SQL, and decides how the rows differ."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.filtered_rows import left_out_rows
from dmdelta.quality.reconcile import (
    Comparison,
    HashedRow,
    Kind,
    compared_rows,
    differing_documents,
    differing_rows,
    plan_comparison,
    silver_values,
    source_values_query,
)
from dmdelta.quality.row_keys import RowKey, is_askable, part_columns, silver_among, source_among
from dmdelta.rules.comparable_rows import ALL_ROWS, ComparableRows


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The source's results of `RowLook.source_query` and `RowLook.values_query` for some rows."""

    rows: Sequence[Sequence[object]]
    values: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Silver's rows for changed keys.

    Attributes:
        keys: keys for which silver has no row, or only recently written ones.
        silver: silver's rows of these keys.
        old: keys for which silver also has rows that were written earlier, which a change should have replaced.
    """

    keys: Sequence[RowKey]
    silver: Sequence[HashedRow]
    old: Sequence[RowKey]


@dataclass(frozen=True, slots=True)
class RowLook:
    """How rows of a table are compared.

    Attributes:
        documents: the JSON columns, which are compared by meaning.
        fast: only compare whether a row exists.
        uncompared: columns of the source that are not compared.
        outdated: a row that only silver has may be an outdated one that a filter of the spec left there.
    """

    comparison: Comparison
    documents: tuple[Column, ...]
    fast: bool
    uncompared: tuple[str, ...] = ()
    outdated: bool = False

    @property
    def key(self) -> tuple[Column, ...]:
        return self.comparison.key

    def source_query(self, table: str, keys: Sequence[RowKey]) -> str:
        """Key, hash, whether it is excluded (1 or 0), and documents of the rows of some keys, in the source's SQL."""
        left_out = self.comparison.left_out
        hashes = [
            "0" if self.fast else self.comparison.hash.source,
            f"IF({left_out.source}, 1, 0)" if left_out else "0",
        ]
        texts = [f"CAST({quote(column.name)} AS CHAR)" for column in self.documents]
        chosen = ", ".join([self.comparison.key_text.source, *hashes, *texts])
        return f"SELECT {chosen} FROM {table} WHERE {source_among(self.key, keys)}"

    def silver_rows(self, rows: DataFrame, keys: Sequence[RowKey]) -> DataFrame:
        """Silver's rows of some keys, with all columns."""
        return rows.where(silver_among(self.key, self.comparison.key_text.silver, keys))

    def silver_hashes(self, rows: DataFrame) -> list[HashedRow]:
        """Key and hash of silver's rows, and whether they are excluded."""
        texts = (f"{self.comparison.key_text.silver} AS k", f"{self._hash} AS h", f"{self._left_out} AS l")
        return [(row["k"], int(row["h"]), int(row["l"])) for row in rows.selectExpr(*texts).collect()]

    def changed_rows(self, touched: DataFrame, rows: DataFrame, written: DataFrame) -> ChangedRows:
        """Find silver's rows for changed keys, in one pass.

        Args:
            touched: the distinct keys of the changed rows.
            rows: silver's rows, of which only the key columns are read.
            written: silver's recently written rows, which should include all changed rows.
        """
        names = [column.name for column in self.key]
        columns = [quote(name) for name in names]
        among = rows.selectExpr(*columns).join(F.broadcast(touched), names, "left_semi")
        counts = among.groupBy(*columns).agg(F.expr("count(*) AS _dm_rows"))
        recently_written = written.selectExpr(
            *columns, f"{self._hash} AS _dm_hash", f"{self._left_out} AS _dm_left_out"
        )
        text, parts = self.comparison.key_text.silver, ", ".join(part_columns(self.key))
        joined = touched.join(recently_written, names, "left").join(counts, names, "left")
        found = joined.selectExpr(
            f"{text} AS k", f"array({parts}) AS parts", "_dm_hash", "_dm_left_out", "_dm_rows"
        ).collect()
        known = [row for row in found if None not in row["parts"]]
        keys = {row["k"]: RowKey(row["k"], tuple(row["parts"])) for row in known}
        existing = [row for row in known if row["_dm_hash"] is not None]
        hashes = [(row["k"], int(row["_dm_hash"]), int(row["_dm_left_out"])) for row in existing]
        recent = Counter(key for key, _, _ in hashes)
        old = {row["k"] for row in known if (row["_dm_rows"] or 0) != recent[row["k"]]}
        return ChangedRows(
            [key for text, key in keys.items() if text not in old],
            [each for each in hashes if each[0] not in old],
            [keys[text] for text in old],
        )

    def differences(
        self, source_rows: Sequence[Sequence[object]], silver: Iterable[HashedRow], rows: DataFrame
    ) -> dict[str, Kind]:
        """How rows differ, by the key's text.

        Args:
            source_rows: the result of `source_query`.
            silver: key and hash of silver's rows.
            rows: silver's rows, for their documents.
        """
        source = [(str(row[0]), int(str(row[1])), int(str(row[2]))) for row in source_rows]
        compared = compared_rows(source, silver)
        kinds = differing_rows(compared.source, compared.silver)
        if self.outdated:
            kinds = {key: kind for key, kind in kinds.items() if kind is not Kind.EXTRA}
        if self.documents:
            left_out = {key for key, _, left in source if left}
            same = [row for row in _texts(source_rows) if row[0] not in kinds and row[0] not in left_out]
            kinds |= dict.fromkeys(differing_documents(self.comparison, self.documents, rows, same), Kind.DIFFERENT)
        return kinds

    def values_query(self, table: str, keys: Sequence[RowKey]) -> str:
        """Key and text of each column of some rows, in the source's SQL; its arguments are the keys' texts."""
        return source_values_query(self.comparison, table, source_among(self.key, keys), [row.text for row in keys])

    def differing_values(
        self, keys: Sequence[RowKey], source_rows: SourceRows, rows: DataFrame
    ) -> dict[str, dict[str, tuple[str | None, str | None]]]:
        """The differing values of differing rows, by the key's text and column.

        Args:
            source_rows: the source's results for these rows.
            rows: silver's rows.
        """
        source = {str(row[0]): row[1:] for row in source_rows.values}
        silver = silver_values(self.comparison, rows, [key.text for key in keys])
        documents = (
            differing_documents(self.comparison, self.documents, rows, _texts(source_rows.rows))
            if self.documents
            else {}
        )
        nothing = (None,) * len(self.comparison.values())
        found: dict[str, dict[str, tuple[str | None, str | None]]] = {}
        for key in keys:
            sides = zip(source.get(key.text, nothing), silver.get(key.text, nothing), strict=True)
            pairs = ((None if one is None else str(one), two) for one, two in sides)
            named = zip((name for name, _ in self.comparison.values()), pairs, strict=True)
            found[key.text] = {name: pair for name, pair in named if pair[0] != pair[1]} | documents.get(key.text, {})
        return found

    @property
    def _hash(self) -> str:
        return "0" if self.fast else self.comparison.hash.silver

    @property
    def _left_out(self) -> str:
        return f"IF({self.comparison.left_out.silver}, 1, 0)" if self.comparison.left_out else "0"


def left_out_of(source_rows: Sequence[Sequence[object]]) -> int:
    """The number of rows from `RowLook.source_query` that are not compared."""
    return sum(int(str(row[2])) for row in source_rows)


def _texts(source_rows: Sequence[Sequence[object]]) -> list[tuple[str | None, ...]]:
    """Key and documents of the rows from `RowLook.source_query`."""
    return [(str(row[0]), *(None if text is None else str(text) for text in row[3:])) for row in source_rows]


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The facts that decide whether a table's rows can be compared.

    Attributes:
        schema: the table's schema at the source, None if the source has no such table.
        columns: silver's columns, None if silver has no such table.
        compared: the rows that the spec's filters leave unchanged, or why there are none.
        absent: silver's columns of other shards, which are NULL in the table's rows.
    """

    schema: TableSchema | None
    columns: tuple[str, ...] | None
    compared: ComparableRows | str = ALL_ROWS
    absent: tuple[str, ...] = ()


def plan_look(facts: TableFacts, flavor: Flavor, *, fast: bool) -> RowLook | str:
    """Plan how a table's rows are compared, or return why they cannot be.

    Raises:
        ConfigError: an expression filter has a part that Spark does not evaluate like the server.
    """
    schema, columns, compared = facts.schema, facts.columns, facts.compared
    if isinstance(compared, str):
        return compared
    if schema is None:
        return "the source has no such table"
    if not schema.primary_key:
        return "the table has no key"
    if columns is None:
        return "silver has no such table"
    left_out = left_out_rows(compared, schema, flavor)
    comparison = plan_comparison(schema, columns, flavor, 0, left_out=left_out, absent=facts.absent)
    if tuple(column.name for column in comparison.key) != schema.primary_key or not is_askable(comparison.key):
        return "its rows cannot be looked up by key"
    if fast:
        return RowLook(comparison, (), fast=True, outdated=compared.outdated)
    documents = tuple(column for column in schema.columns if column.type == "json" and column.name in columns)
    compared_columns = {*comparison.columns, *documents}
    left = tuple(column.name for column in schema.columns if column not in compared_columns)
    return RowLook(comparison, documents, fast=False, uncompared=left, outdated=compared.outdated)
