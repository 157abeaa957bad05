"""Marks on row changes: whether silver quarantines the row that a change leaves, for readers that follow silver."""

from collections.abc import Callable
from typing import Protocol

from pyspark.sql import DataFrame

from dmdelta.model.schema import TableName, TableSchema

QUARANTINED = "_dm_quarantined"
"""The column that a `RowMark` adds: true for an image `after` that silver quarantines, else false; never NULL."""

RowMark = Callable[[DataFrame], DataFrame]
"""Adds the column to rows of bronze."""


class Quarantining(Protocol):
    """Silver's decision."""

    def __call__(self, name: TableName, schema: TableSchema, *, partial: bool) -> RowMark | None:
        """The mark for a source table's rows under one structure; None: no rule quarantines them.

        Args:
            partial: some images contain only some of the columns.

        Raises:
            QualityError: the rules cannot be evaluated. ConfigError: an expectation does not fit the table.
        """
