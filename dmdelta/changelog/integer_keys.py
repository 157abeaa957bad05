"""The keys that changes in memory affect, for tables with one integer as primary key: computed without Spark."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.variant_arrays import integers
from dmdelta.changelog.variant_layout import Images
from dmdelta.errors import LakehouseError
from dmdelta.model.change import ROW_OPS, Op
from dmdelta.model.schema import Column, ConstantColumn, StoredColumn, TableSchema

Keys = npt.NDArray[np.int64 | np.uint64]
_INTEGER_TYPES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})


def integer_key(schema: TableSchema) -> Column | None:
    """The primary key, if it is one integer column that silver stores in its own type; else None."""
    keys = keys_of(schema)
    if len(keys) != 1 or isinstance(keys[0], ConstantColumn | StoredColumn) or keys[0].type not in _INTEGER_TYPES:
        return None
    return keys[0]


def integer_keys(rows: Any, schema: TableSchema) -> Keys:
    """The distinct keys that row changes outside XA transactions affect, old and new ones, in ascending order.

    Args:
        rows: an Arrow table of bronze's rows of one table (`BatchMemory.rows`).
        schema: a structure for which `integer_key` is not None.

    Returns:
        uint64 for BIGINT UNSIGNED, else int64.

    Raises:
        LakehouseError: a row image lacks the key.
    """
    key = integer_key(schema)
    assert key is not None, f"{schema} has no integer key"
    is_change = pc.is_in(rows["op"], pa.array([op.value for op in ROW_OPS]))
    changes = rows.filter(pc.and_(is_change, pc.is_null(rows["xid"])))
    deleted = pc.equal(changes["op"], Op.DELETE.value)
    old = changes["before"].filter(pc.or_(deleted, pc.fill_null(changes["key_changed"], fill_value=False)))
    new = changes["after"].filter(pc.invert(deleted))
    kind = np.uint64 if key.type == "bigint" and key.unsigned else np.int64
    return np.unique(np.concatenate([_of_images(images, key.name, kind) for images in (old, new)]))


def _of_images(images: Any, name: str, kind: type[np.uint64] | type[np.int64]) -> Keys:
    if not len(images):
        return np.zeros(0, kind)
    values = integers(Images(images), name, kind)
    if values is None:
        raise LakehouseError(f"a row image in bronze lacks the key column {name}", hint="report this to the project")
    return values
