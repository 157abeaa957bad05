"""The recorded binlogs of tests/golden/binlog and the tables that they result in."""

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from dmdelta.binlog.events.boundary import BoundaryTracker, walk_events
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment
from dmdelta.quality.json_compare import parse_document
from dmdelta.segments import list_segments
from tests.support.servers import Server
from tests.support.values import Document

SERVERS = ("mysql80", "mysql57", "mysql97", "mariadb")
GOLDEN = Path(__file__).parents[1] / "golden" / "binlog"


@dataclass(frozen=True)
class Recording:
    """One server's binlogs; `tables` by name: keys, columns and rows in canonical form."""

    name: str
    schema: str
    version: str
    tables: dict[str, Any]
    known: dict[tuple[str, str], Sequence[TableSchema]]

    @property
    def folder(self) -> Path:
        return GOLDEN / self.name

    def segments(self) -> Iterator[Segment]:
        yield from list_segments(self.folder, "golden")

    def options(self, **settings: Any) -> DecodeOptions:
        """How its own tables are decoded: only MySQL 5.7 needs known structures."""
        return DecodeOptions(
            **{
                "wanted": lambda schema, _: schema == self.schema,
                "known_schemas": self.known if self.name == "mysql57" else {},
                "statement_targets": statement_targets,
                **settings,
            }
        )


def recording(name: str) -> Recording:
    """The recording of a server."""
    facts = json.loads((GOLDEN / name / "tables.json").read_text())
    known = [TableSchema.from_json(text) for text in facts["known"]]
    by_name = {(schema.schema, schema.table): [schema] for schema in known}
    return Recording(name, facts["schema"], facts["version"], facts["tables"], by_name)


def boundaries(data: bytes, segment: Segment) -> list[int]:
    """The offsets in the server's file where a segment may end, in order; the segment's own end is the last."""
    tracker = BoundaryTracker()
    return [
        header.offset + header.size
        for header, body in walk_events(io.BytesIO(data), segment)
        if tracker.feed(header.event_type, body, header.server_id)
    ]


def cut_at(data: bytes, whole: Segment, ends: Sequence[int]) -> Iterator[tuple[Segment, bytes]]:
    """A whole binlog file as segments that end at `ends`, and the bytes of each."""
    description = FIRST_OFFSET + int.from_bytes(data[FIRST_OFFSET + 9 : FIRST_OFFSET + 13], "little")
    for start, end in zip([FIRST_OFFSET, *ends[:-1]], ends, strict=True):
        head = MAGIC if start == FIRST_OFFSET else data[:description]
        yield replace(whole, start=start, end=end), head + data[start:end]


def canonical(value: Any) -> Any:
    """The canonical JSON form of a value."""
    if isinstance(value, Document):
        return {"json": canonical(parse_document(value.text))}
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return {"hex": value.hex()}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Decimal):
        whole = value == value.to_integral_value()
        return int(value) if whole else {"decimal": str(value.normalize())}
    if isinstance(value, (date, datetime)):
        return {"time": value.isoformat()}
    return value


_COLUMN_FACTS = (
    "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, "
    "DATETIME_PRECISION, CHARACTER_SET_NAME, IS_NULLABLE"
)


def known_schemas(server: Server, database: str) -> Iterator[TableSchema]:
    """Structures from information_schema, for servers whose table maps have no column names."""
    where = f"TABLE_SCHEMA = '{database}'"
    for (table,) in server.query(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE {where}"):
        of_table = f"{where} AND TABLE_NAME = '{table}'"
        columns = server.query(
            f"SELECT {_COLUMN_FACTS} FROM information_schema.COLUMNS WHERE {of_table} ORDER BY ORDINAL_POSITION"
        )
        keys = server.query(
            f"SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE {of_table} AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION"
        )
        yield TableSchema(database, table, tuple(_column(facts) for facts in columns), tuple(key for (key,) in keys))


def _column(facts: Sequence[Any]) -> Column:
    name, kind, full, octets, digits, scale, fraction, charset, nullable = facts
    length = int(octets) if kind in {"char", "varchar", "binary", "varbinary"} else int(digits) if kind == "bit" else 0
    precision = int(digits) if kind == "decimal" else int(fraction or 0)
    members = tuple(re.findall(r"'((?:[^']|'')*)'", full)) if kind in {"enum", "set"} else ()
    return Column(
        name,
        kind,
        unsigned="unsigned" in full and kind != "year",
        length=length,
        precision=precision,
        scale=int(scale) if kind == "decimal" else 0,
        charset=charset,
        members=members,
        nullable=nullable == "YES",
    )
