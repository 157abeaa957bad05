"""Applies decoded changes to tables without Spark, to check the codec's output.

VARIANT values are read by PySpark's own reader. Every before image is compared with the row before the change: a
difference is a fault even if the final result is correct.
"""

import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql.types import VariantVal

from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.change import Op
from dmdelta.model.schema import TableSchema
from dmdelta.quality.json_compare import parse_document, same_document
from dmdelta.segments import list_segments
from tests.support.diff import Difference
from tests.support.servers import Server
from tests.support.values import Document, SourceColumn, source_columns, source_rows

Name = tuple[str, str]
Image = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One decoded bronze row."""

    op: Op
    schema: str | None
    table: str | None
    before: Image | None
    after: Image | None
    image: tuple[str, ...] | None
    xid: str | None
    seq: int
    row: int
    gtid: str | None
    ddl: str | None
    moved: bool


def decode(
    archive: Path, wanted: Callable[[str, str], bool], known: Mapping[Name, Sequence[TableSchema]] | None = None
) -> Iterator[Change]:
    """Every change of an archive's files, in log order."""
    options = DecodeOptions(wanted=wanted, known_schemas=known or {}, statement_targets=statement_targets)
    for segment in list_segments(archive, "test"):
        with open(segment.path, "rb") as stream:
            for batch in decode_segment(stream, segment, options):
                at, moved = 0, set(batch.moved)
                for count, seq, first, index in batch.runs:
                    gtid, _, schema, table, op, xid, image, ddl, _, metadata = batch.shared[index]
                    for number in range(count):
                        before, after = (
                            image_of(batch.before[at], metadata),
                            image_of(batch.after[at], metadata),
                        )
                        place = (seq, first + number)
                        yield Change(op, schema, table, before, after, image, xid, *place, gtid, ddl, at in moved)
                        at += 1


def image_of(value: bytes, metadata: bytes) -> Image | None:
    with decimal.localcontext(decimal.Context(prec=80)):  # PySpark's reader rounds to the context's digits
        return VariantVal(value, metadata).toPython() if value else None


@dataclass
class Tables:
    """Tables by name, rows by `key` (the table's key columns); prepared XA changes wait for commit or rollback."""

    keys: Callable[[Name], Sequence[str]]
    rows: dict[Name, dict[tuple[Any, ...], Image]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _prepared: dict[str, list[Change]] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        if change.op is Op.XA_COMMIT:
            for waiting in self._prepared.pop(change.xid or "", []):
                self._apply(waiting)
        elif change.op is Op.XA_ROLLBACK:
            self._prepared.pop(change.xid or "", None)
        elif change.xid is not None:
            self._prepared.setdefault(change.xid, []).append(change)
        else:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        name = (change.schema or "", change.table or "")
        rows = self.rows.setdefault(name, {})
        if change.op is Op.TRUNCATE:
            rows.clear()
        elif change.op in (Op.INSERT, Op.UPDATE, Op.DELETE):
            old = self._take(name, change) if change.before is not None else {}
            if change.after is not None:
                row = {**old, **change.after} if change.image is not None else change.after
                rows[self._key(name, row)] = row
                moved = change.op is Op.UPDATE and self._key(name, old) != self._key(name, row)
                if change.moved != moved:
                    self.faults.append(
                        f"{name[1]}: a key change told {change.moved}, not {moved}: {change.after!r:.200}"
                    )

    def _take(self, name: Name, change: Change) -> Image:
        before = change.before or {}
        old = self.rows[name].pop(self._key(name, before), None)
        if old is None:
            self.faults.append(f"{name[1]}: {change.op.value} of an unknown row {self._key(name, before)}")
            return {}
        for column, value in before.items():
            if not same_value(value, old.get(column)):
                self.faults.append(
                    f"{name[1]}.{column}: before image {value!r:.200}, the row had {old.get(column)!r:.200}"
                )
        return old

    def _key(self, name: Name, row: Image) -> tuple[Any, ...]:
        return tuple(_frozen(row[column]) for column in self.keys(name))


def _frozen(value: Any) -> Any:
    return str(value) if isinstance(value, (dict, list)) else value


def same_value(left: Any, right: Any) -> bool:
    """Whether two decoded values are equal."""
    return (left is None) == (right is None) and left == right


def replay_differences(server: Server, database: str, table: str, state: Tables) -> list[Difference]:
    """The differences between the replayed tables and the source; odd dates compare as their text."""
    columns, keys = source_columns(server, database, table)
    at = [[column.name for column in columns].index(key) for key in keys]
    wanted = {
        tuple(row[place] for place in at): row for row in source_rows(server, database, table, columns, keep_odd=True)
    }
    found = state.rows.get((database, table), {})
    lines = [Difference(table, "not in the decoded log", key=key) for key in wanted if key not in found]
    lines += [Difference(table, "decoded, not in the source", key=key) for key in found if key not in wanted]
    for key in wanted.keys() & found.keys():
        lines += [
            Difference(table, f"source {value!r:.300}, decoded {found[key].get(column.name)!r:.300}", column.name, key)
            for column, value in zip(columns, wanted[key], strict=True)
            if not _agrees(column, value, found[key])
        ]
    return lines


def _agrees(column: SourceColumn, value: Any, row: Image) -> bool:
    decoded = row.get(column.name)
    if isinstance(value, Document):
        return column.name in row and same_as_document(decoded, parse_document(value.text))
    if value is None:
        # In a JSON column an absent field is SQL NULL, a null is JSON null.
        return decoded is None and (column.type != "json" or column.name not in row)
    return decoded is not None and bool(as_source(decoded, column.type) == value)


def as_source(value: Any, kind: str) -> Any:
    """A decoded value in the form of `values.source_rows`."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(tzinfo=None) if kind == "timestamp" else value
    if isinstance(value, dict) and set(value) == {"srid", "wkb"}:
        return (value["srid"], bytes(value["wkb"]))
    return value


def same_as_document(decoded: Any, document: Any) -> bool:
    """Whether a decoded JSON value equals the source's document, which is parsed with exact numbers."""
    return same_document(plain(decoded), document)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return value
