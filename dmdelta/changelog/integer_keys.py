"""Compaction of changes in memory, for tables with one integer as primary key: computed without Spark.

The rules are those of `dmdelta.silver.rows.compaction`, which compacts all other changes.
"""

from dataclasses import dataclass
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


def has_signed_key(schema: TableSchema) -> bool:
    """Whether the primary key is one integer column whose values BIGINT holds."""
    key = integer_key(schema)
    return key is not None and not (key.type == "bigint" and key.unsigned)


@dataclass(frozen=True, slots=True)
class NetChanges:
    """Row changes of one table, compacted by key.

    Attributes:
        keys: the distinct keys that the changes affect, old and new ones, in ascending order: uint64 for BIGINT
            UNSIGNED, else int64.
        changes: an Arrow table of the row changes.
        last: the places in `changes` of the last change of each key that exists after all of them, ascending.
        last_keys: the keys of `last`.
    """

    keys: Keys
    changes: Any
    last: npt.NDArray[np.int64]
    last_keys: Keys

    @property
    def upserts(self) -> Any:
        """An Arrow table of the last changes, in log order, with `COLUMNS`. The key's row is the image `after`."""
        return self.changes.select(COLUMNS).take(pa.array(self.last))


COLUMNS = ("after", "epoch", "seq", "row", "committed_at")
"""The columns of bronze that make a row of silver."""


def net_changes(rows: Any, schema: TableSchema) -> NetChanges:
    """Compact row changes outside XA transactions. A key change deletes the old key and inserts the new one.

    Args:
        rows: an Arrow table of bronze's rows of one table, in log order (`BatchMemory.rows`).
        schema: a structure for which `integer_key` is not None.

    Raises:
        LakehouseError: a row image lacks the key.
    """
    key = integer_key(schema)
    assert key is not None, f"{schema} has no integer key"
    is_change = pc.is_in(rows["op"], pa.array([op.value for op in ROW_OPS]))
    changes = rows.filter(pc.and_(is_change, pc.is_null(rows["xid"])))
    deletes = pc.equal(changes["op"], Op.DELETE.value)
    removed = _places(pc.or_(deletes, pc.fill_null(changes["key_changed"], fill_value=False)))
    written = _places(pc.invert(deletes))
    kind = np.uint64 if key.type == "bigint" and key.unsigned else np.int64
    images = (changes["before"].take(pa.array(removed)), changes["after"].take(pa.array(written)))
    keys = np.concatenate([_of_images(each, key.name, kind) for each in images])
    # Even numbers delete a key, odd ones write it: a key change does both, in this order.
    moments = np.concatenate([2 * removed, 2 * written + 1])
    order = np.lexsort((moments, keys))
    distinct, firsts = np.unique(keys[order], return_index=True)
    last = moments[order][[*firsts[1:] - 1, len(order) - 1]] if len(distinct) else moments
    exists = last % 2 == 1
    places = last[exists] // 2
    in_log_order = np.argsort(places)
    return NetChanges(distinct, changes, places[in_log_order], distinct[exists][in_log_order])


def _places(mask: Any) -> npt.NDArray[np.int64]:
    return np.flatnonzero(mask.to_numpy())


def _of_images(images: Any, name: str, kind: type[np.uint64] | type[np.int64]) -> Keys:
    if not len(images):
        return np.zeros(0, kind)
    values = integers(Images(images), name, kind)
    if values is None:
        raise LakehouseError(f"a row image in bronze lacks the key column {name}", hint="report this to the project")
    return values
