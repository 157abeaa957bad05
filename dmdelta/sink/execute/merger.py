"""The merger: adjacent similar changes become one statement.

INSERT + INSERT → INSERT … VALUES (…),(…); UPDATE + UPDATE → INSERT … ON DUPLICATE KEY UPDATE; DELETE + DELETE →
DELETE … IN. In safe mode an INSERT becomes a REPLACE, and an UPDATE a DELETE and a REPLACE. If foreign keys are
checked, these must not affect other rows: checks are disabled for them, except for the effects that the source had.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.plan import sql

STATEMENT_CHARACTERS = 1 << 20
"""Size at which a statement is ended: servers limit the packet size."""

Work = tuple[Shape, Change]


@dataclass(frozen=True, slots=True)
class Style:
    """How changes are written as SQL.

    Attributes:
        multiple_rows: DM's `multiple-rows`: merge.
        safe: the changes may have been executed before.
        checked: the target checks foreign keys.
    """

    multiple_rows: bool = True
    safe: bool = False
    checked: bool = False


def merged(work: Sequence[Work], style: Style) -> Iterator[str]:
    """The statements of changes, in their order."""
    for (shape, kind), run in groupby(work, key=lambda one: (one[0], _kind(one[1]))):
        for part in _parts([change for _, change in run], limit=_limit(shape, kind, style)):
            if style.safe and style.checked:
                yield from _cascading(shape, part)
                yield from _unchecked(_statements(shape, part, style))
            else:
                yield from _statements(shape, part, style)


def _kind(change: Change) -> tuple[Act, bool, bool]:
    """What changes must have in common to be merged: the act, complete values, an unchanged key."""
    return change.act, change.values is not None, change.was is not None


def _limit(shape: Shape, kind: tuple[Act, bool, bool], style: Style) -> int:
    """Maximum number of changes of a kind in one statement."""
    act, whole, moves = kind
    single = not style.multiple_rows or moves or (act is not Act.DELETE and not whole)
    alone = (shape.keyless and act is not Act.INSERT) or (act is Act.UPDATE and not shape.assigned)
    return 1 if single or alone else 1 << 30


def _parts(changes: list[Change], limit: int) -> Iterator[list[Change]]:
    part: list[Change] = []
    size = 0
    for change in changes:
        length = len(change.values or change.sets or "") + len(change.identity)
        if part and (len(part) >= limit or size + length > STATEMENT_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(change)
        size += length
    if part:
        yield part


def _statements(shape: Shape, part: list[Change], style: Style) -> Iterator[str]:
    first = part[0]
    rows = [change.values for change in part if change.values is not None]
    identities = [change.found_by for change in part]
    if first.act is Act.DELETE:
        yield sql.delete(shape, identities)
    elif first.act is Act.INSERT and rows:
        yield (sql.replace if style.safe else sql.insert)(shape, rows)
    elif first.act is Act.INSERT:
        yield (sql.replace_some if style.safe else sql.insert_some)(shape, first.sets or "")
    elif style.safe and rows:
        yield sql.delete(shape, identities)
        yield sql.replace(shape, rows)
    elif first.sets is not None:
        # An incomplete image cannot be replaced; assigning the same values again is idempotent.
        yield sql.update(shape, first.sets, identities[0])
    elif shape.assigned:
        yield sql.upsert(shape, rows)
    else:  # the upsert is impossible: delete and insert the row
        yield sql.delete(shape, identities)
        yield sql.insert(shape, rows)


def _cascading(shape: Shape, part: list[Change]) -> Iterator[str]:
    """Statements that cascade as at the source: a deleted row, or a changed key. Rows from later in the log may
    conflict or prevent the change: IGNORE skips those.
    """
    first = part[0]
    if shape.keyless:
        return
    if first.act is Act.DELETE:
        yield sql.delete(shape, [change.found_by for change in part], ignore=True)
    elif first.was is not None and first.sets is not None:
        if first.values is not None:  # the row is written again afterwards
            yield from _unchecked([sql.delete(shape, [first.identity])])
        yield sql.update(shape, first.sets, first.was, ignore=True)


def _unchecked(written: Iterable[str]) -> Iterator[str]:
    yield "SET foreign_key_checks = 0"
    yield from written
    yield "SET foreign_key_checks = 1"
