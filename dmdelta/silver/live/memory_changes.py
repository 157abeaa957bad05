"""Row changes in memory that follow the rows of a query: changes between statements do not add a join for each."""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from dmdelta.changelog.integer_keys import Keys, net_changes
from dmdelta.ddl.tracking.effects import Altered
from dmdelta.silver.live.removed_keys import without_keys
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.compaction import inserted_rows
from dmdelta.silver.table.shard_rows import as_held


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows that a batch wrote and no later batch has changed.

    Attributes:
        keys: their keys.
        images: their images and positions, as `NetChanges.upserts`.
        held: a frame with silver's columns at the time of the batch.
        statements: the columns (SQL) after each statement since then.
    """

    batch: Batch
    keys: Keys
    images: Any
    held: DataFrame
    statements: tuple[tuple[str, ...], ...] = ()

    def without(self, keys: Keys) -> "WrittenRows":
        """The rows with other keys."""
        kept = ~np.isin(self.keys, keys)
        return replace(self, keys=self.keys[kept], images=self.images.filter(pa.array(kept)))

    def frame(self) -> DataFrame:
        """The rows with silver's current columns."""
        schema, images = self.batch.schema, self.batch.spark.createDataFrame(self.images)
        rows = as_held(self.batch.kept(inserted_rows(images, schema)), self.held)
        return reduce(lambda frame, columns: frame.selectExpr(*columns), self.statements, rows)


@dataclass(frozen=True, slots=True)
class MemoryChanges:
    """The changes of batches in memory, compacted by a key of one integer column.

    Attributes:
        key: the name of its column.
        removed: the keys whose rows in the query are replaced or deleted.
    """

    key: str
    removed: Keys = field(default_factory=lambda: np.zeros(0, np.int64))
    written: tuple[WrittenRows, ...] = ()

    def after(self, batch: Batch, held: DataFrame) -> "MemoryChanges":
        """The changes after a further batch.

        Args:
            batch: with `memory`, a signed integer key, and complete row images outside XA transactions.
            held: a frame with silver's columns.

        Raises:
            LakehouseError: a row image lacks the key.
        """
        net = net_changes(batch.memory, batch.schema)
        removed, written = self.removed, self.written
        if not batch.inserts_only and not batch.empty:
            removed = np.union1d(removed, net.keys).astype(np.int64)
            written = tuple(rows.without(net.keys) for rows in written)
        new = WrittenRows(batch, net.last_keys, net.upserts, held)
        return replace(self, removed=removed, written=tuple(rows for rows in (*written, new) if len(rows.keys)))

    def altered(self, columns: tuple[str, ...]) -> "MemoryChanges":
        """The changes after a statement for which `keeps_key` is true. `columns`: silver's columns (SQL) after it."""
        return replace(
            self, written=tuple(replace(rows, statements=(*rows.statements, columns)) for rows in self.written)
        )

    def added_to(self, rows: DataFrame) -> DataFrame:
        """The rows of a query after the changes. Only the affected keys and the last images are sent to Spark."""
        rows = without_keys(rows, self.key, self.removed)
        return reduce(DataFrame.unionAll, (written.frame() for written in self.written), rows)


def keeps_key(altered: Altered) -> bool:
    """Whether a statement leaves the primary key, and the names and types of its columns, as they are."""
    before, after = altered.before, altered.after
    types = {column.name: (column.type, column.unsigned) for column in before.columns}
    kept = {
        column.name
        for column, origin in zip(after.columns, altered.origins, strict=True)
        if origin.was == column.name and types[column.name] == (column.type, column.unsigned)
    }
    return before.primary_key == after.primary_key and kept.issuperset(after.primary_key)
