"""The rows of one table that are applied together, from memory or from bronze."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.integer_keys import integer_key
from dmdelta.changelog.ranges import of_source, of_table, row_changes
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.rows.compaction import key_names, keyed_changes
from dmdelta.silver.rows.key_changes import Slice
from dmdelta.silver.rows.key_predicate import SUFFIXES
from dmdelta.silver.rows.strategy import MAX_REPLACED_KEYS, Mode
from dmdelta.silver.schema.range_profile import TableEvents


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one table in one range, with one structure.

    Attributes:
        bronze, target: SQL identifiers.
        empty: the silver table was created for this batch.
        part: the slice of the range's rows; None for all.
        counted: the condition (SQL) for rows that filters do not exclude; '' for all.
        failing: true for rows that are quarantined; None if there are none.
        undropped: columns of silver that the source has dropped, by a statement that the rules ignored.
        repeats: an inserted key may exist in silver, because a filter excluded its delete.
        memory: the table's rows of the range as Arrow (`BatchMemory.rows`); None: they are read from bronze.
    """

    spark: SparkSession
    bronze: str
    source_id: str
    target: str
    schema: TableSchema
    begin: Position
    end: Position
    events: TableEvents
    mode: Mode
    empty: bool
    part: Slice | None = None
    counted: str = ""
    failing: Column | None = None
    undropped: tuple[str, ...] = ()
    repeats: bool = False
    memory: Any = None

    @property
    def changes(self) -> DataFrame:
        """The row changes that take effect in the range."""
        table = of_table(self.events.schema, self.events.table)
        effective = row_changes(self.begin, self.end, self.events.groups)
        # A snapshot row is a new row, like an insert.
        columns = "* EXCEPT (op), IF(op = 'read', 'insert', op) AS op" if Op.READ in self.events.rows else "*"
        condition = f"{of_source(self.source_id)} AND {table} AND {effective}"
        condition += f" AND {self.part.condition}" if self.part else ""
        condition += f" AND {self.counted}" if self.counted else ""
        if self.memory is not None:
            return self.spark.createDataFrame(self.memory).where(condition)
        return self.spark.sql(f"SELECT {columns} FROM {self.bronze} WHERE {condition}")

    @property
    def keyed(self) -> bool:
        return bool(self.schema.primary_key)

    @property
    def inserts_only(self) -> bool:
        """Whether every row is new, so that compaction is unnecessary."""
        rows = self.events.rows
        if self.repeats and self.keyed:
            return False
        return not (rows.get(Op.UPDATE) or rows.get(Op.DELETE)) and (self.empty or self.mode is Mode.NORMAL)

    @property
    def folds(self) -> bool:
        """Whether row images lack columns of silver, which must keep their values."""
        return bool(self.events.partial) or (bool(self.undropped) and self.failing is None)

    @property
    def integer_key(self) -> str | None:
        """The SQL type of the key in silver if it is one integer column."""
        kinds = [silver_type(key) for key in keys_of(self.schema)]
        return kinds[0] if len(kinds) == 1 and kinds[0] in SUFFIXES else None

    @property
    def compacts_in_memory(self) -> bool:
        """Whether its keys are known without a query: the changes are in memory, and no filter excludes any of them."""
        return self.memory is not None and not self.counted and integer_key(self.schema) is not None

    def query_keys(self) -> list[int]:
        """The keys that the batch's changes affect, sorted and distinct; more than MAX_REPLACED_KEYS if too many.

        Only for a batch with an `integer_key`.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        with wrapped(self.bronze, "reading"):
            keys = keyed_changes(self.changes, self.schema, moves=bool(self.events.moves)).select(
                key_names(self.schema)
            )
            return sorted(int(row[0]) for row in keys.distinct().limit(MAX_REPLACED_KEYS + 1).collect())

    def kept(self, rows: DataFrame) -> DataFrame:
        """The rows that are not quarantined."""
        return rows if self.failing is None else rows.where(~self.failing)
