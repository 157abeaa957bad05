"""A source table's changes in columnar form: Arrow renders what Spark has read into texts for the target."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.changelog.variant_arrays import TEXT
from dmdelta.changelog.variant_layout import Images
from dmdelta.errors import SinkError
from dmdelta.model.schema import ConstantColumn
from dmdelta.sink.change import ACTS, Act
from dmdelta.sink.plan.table_mapping import KeyPlan, TablePlan
from dmdelta.sink.read.image_query import Rendering
from dmdelta.sink.read.literals import Literals, joined

Numbers: TypeAlias = npt.NDArray[np.int64]
_CODES = {"read": Act.INSERT, "insert": Act.INSERT, "update": Act.UPDATE, "delete": Act.DELETE}


@dataclass(frozen=True, slots=True)
class Columns:
    """Changes of one source table in columnar form, in log order; NumPy arrays and Arrow arrays of text.

    Attributes:
        acts: indexes into `ACTS`.
        seq: where the changes take effect, for XA at the commit; `own` and `row`: their places in the log.
        identity, was, values, sets: as in `Change`.
        new, old: the text of each key after and before, by key; None in `old`: the change keeps its keys.
        lacks_keys: images lack values of keys: each change has only the key of the table.
    """

    acts: npt.NDArray[np.int8]
    seq: Numbers
    own: Numbers
    row: Numbers
    identity: Any
    was: Any
    values: Any
    sets: Any
    new: tuple[Any, ...]
    old: tuple[Any, ...] = ()
    lacks_keys: bool = False

    def __len__(self) -> int:
        return len(self.acts)

    @property
    def whole(self) -> bool:
        """Every new row has values for all its columns."""
        return int(self.values.null_count) == int(np.count_nonzero(self.acts == ACTS.index(Act.DELETE)))

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Columns":
        """A subset of the changes."""
        mask = pa.array(chosen)

        def some(array: Any) -> Any:
            return None if array is None else array.filter(mask)

        return Columns(
            acts=self.acts[chosen],
            seq=self.seq[chosen],
            own=self.own[chosen],
            row=self.row[chosen],
            identity=some(self.identity),
            was=some(self.was),
            values=some(self.values),
            sets=some(self.sets),
            new=tuple(map(some, self.new)),
            old=tuple(map(some, self.old)),
            lacks_keys=self.lacks_keys,
        )


def rendered(table: Any, wanted: Rendering) -> Columns:
    """Render the columns of `rendering_columns`.

    Raises:
        SinkError: an image lacks the key that the target has.
    """
    plan = wanted.plan
    at, own, row = (table.column(name).to_numpy().astype(np.int64) for name in ("at", "own", "row"))
    # All rows of an XA transaction take effect at its commit, and `row` begins at 0 in each event.
    order = np.lexsort((row, own, at))
    if not np.array_equal(order, np.arange(len(order))):
        table, at, own, row = table.take(pa.array(order)), at[order], own[order], row[order]
    ops = table.column("op").combine_chunks().dictionary_encode()
    codes = np.array([ACTS.index(_CODES[op]) for op in ops.dictionary.to_pylist()], np.int8)
    acts = codes[ops.indices.to_numpy()]
    return _Maker(table, wanted, plan, acts).columns(at, own, row)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Renders the columns of a table."""

    table: Any
    wanted: Rendering
    plan: TablePlan
    acts: npt.NDArray[np.int8]

    def columns(self, at: Numbers, own: Numbers, row: Numbers) -> Columns:
        plan, after, before = self.plan, self._literals("after"), self._literals("before")
        deletes, updates = self._are(Act.DELETE), self._are(Act.UPDATE)
        none = pa.nulls(len(at), TEXT)
        if plan.identity:
            identity = self._of_either(lambda one: one.identities(plan.identity), after, before)
            moves = self._moves(updates)
            was = _only(before.identities(plan.identity), moves) if before and moves is not None else none
            was = pc.if_else(pc.not_equal(was, identity), was, pa.scalar(None, TEXT))
            moves = was.is_valid()
        else:
            conditions = before.conditions(plan.columns, plan.as_text) if before else none
            identity, was, moves = pc.if_else(self._are(Act.INSERT), pa.scalar("", TEXT), conditions), none, None
        if identity.null_count:
            raise SinkError(
                f"images of {'.'.join(plan.source)} lack the key of {plan.shape.table}",
                hint="set binlog_row_image to FULL at the source, or give the target's table the source's key",
            )
        values, sets = self._values(after, deletes), self._sets(after, updates, deletes, moves)
        lacks_keys = self._lacks_keys(before)
        if plan.whole or lacks_keys:
            new, old = (pa.repeat(pa.scalar(plan.table_key, TEXT), len(at)),), ()
        else:
            new, old = self._keys(after, before, identity, was, updates)
        return Columns(
            acts=self.acts,
            seq=at,
            own=own,
            row=row,
            identity=identity,
            was=was,
            values=values,
            sets=sets,
            new=new,
            old=old,
            lacks_keys=lacks_keys,
        )

    def _literals(self, image: str) -> Literals | None:
        if image not in self.table.column_names:
            return None
        written = {
            one.name: pc.cast(self.table.column(f"{image}_{n}").combine_chunks(), TEXT)
            for n, (_, one) in enumerate(self.plan.columns)
            if f"{image}_{n}" in self.table.column_names
        }
        return Literals(Images(self.table.column(image)), written)

    def _are(self, act: Act) -> Any:
        return pa.array(self.acts == ACTS.index(act))

    def _of_either(self, make: Any, after: Literals | None, before: Literals | None) -> Any:
        """Apply `make` to the latest image of each change: before for a delete, else after."""
        if after is None or before is None:
            return make(after or before)
        deletes = self.acts == ACTS.index(Act.DELETE)
        return pc.if_else(pa.array(deletes), make(before), make(after)) if deletes.any() else make(after)

    def _moves(self, updates: Any) -> Any:
        """Where an update may have changed the identity; None for nowhere."""
        if not self.wanted.may_move:
            return None
        changed = self.table.column("key_changed").combine_chunks()
        return pc.and_(updates, pc.fill_null(changed, fill_value=False)) if self.wanted.by_source_key else updates

    def _partial(self) -> Any:
        return self.table.column("image").combine_chunks().is_valid() if self.wanted.partial else None

    def _values(self, after: Literals | None, deletes: Any) -> Any:
        if after is None:
            return pa.nulls(len(self.acts), TEXT)
        values = after.tuples(tuple(column for _, column in self.plan.columns))
        some = self._partial()
        absent = deletes if some is None else pc.or_(deletes, some)
        return pc.if_else(absent, pa.scalar(None, TEXT), values) if pc.any(absent).as_py() else values

    def _sets(self, after: Literals | None, updates: Any, deletes: Any, moves: Any) -> Any:
        """Assignments where `values` cannot be used; None if `values` can be used everywhere."""
        some = self._partial()
        needed = updates if self.wanted.assigned or self.plan.shape.keyless else moves
        if some is not None:
            incomplete = pc.and_(some, pc.invert(deletes))
            needed = incomplete if needed is None else pc.or_(needed, incomplete)
        if after is None or needed is None or not pc.any(needed).as_py():
            return None
        present = {} if some is None else self._present()
        return _only(after.assignments(self.plan.columns, present), needed)

    def _present(self) -> dict[str, Any]:
        """For each column, which images contain it."""
        distinct, codes = _distinct(self.table.column("image").combine_chunks())
        present = {}
        for _, column in self.plan.columns:
            if not isinstance(column, ConstantColumn):
                held = np.array([names is None or column.name in names for names in distinct])
                present[column.name] = pa.array(held[codes])
        return present

    def _lacks_keys(self, before: Literals | None) -> bool:
        """Whether images lack values of keys. Deletes are never marked as partial, nor are updates whose two images
        have all columns only together.
        """
        unmarked = before is not None and len(self.plan.keys) > 1 and before.images.lack(self.plan.key_names)
        return self.wanted.lacks_keys or unmarked

    def _keys(
        self, after: Literals | None, before: Literals | None, identity: Any, was: Any, updates: Any
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        plan = self.plan
        if plan.plain:
            key = plan.keys[0]
            ends = f".{key.parts[0][1]}{key.ends}"
            return (joined(identity, ends),), ((joined(was, ends),) if was.null_count < len(was) else ())
        kinds: list[Callable[[Literals], Any]] = [partial(_key, key) for key in plan.keys]
        if not plan.identity:
            every = tuple(column for _, column in plan.columns)
            kinds.append(lambda one: one.tuples(every, f").{plan.shape.table}"))
        new = tuple(self._of_either(make, after, before) for make in kinds)
        if before is None or not (self.wanted.compares or self.wanted.may_move):
            return new, ()
        return new, tuple(_only(make(before), updates) for make in kinds)


def _key(key: KeyPlan, literals: Literals) -> Any:
    """The texts of a key; NULL where a part is NULL: such a key equals no other."""
    parts = [
        part for column, name, prefix in key.parts for part in (".", literals.key_texts(column, prefix), f".{name}")
    ]
    return joined(*parts[1:], key.ends)


def _only(values: Any, where: Any) -> Any:
    return pc.if_else(where, values, pa.scalar(None, TEXT))


def _distinct(lists: Any) -> tuple[list[list[str] | None], Numbers]:
    """The distinct lists of a column of lists of text, and each row's index into them."""
    # Names contain no NUL, so the joined text can be split again.
    texts = pc.binary_join(lists, "\0").dictionary_encode()
    codes = pc.fill_null(texts.indices, len(texts.dictionary)).to_numpy().astype(np.int64)
    return [*(one.split("\0") for one in texts.dictionary.to_pylist()), None], codes
