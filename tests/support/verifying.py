"""Recorded binlogs as `verify` reads them: bronze's rows, the log's events, and what is not covered."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from pyspark.sql.types import VariantVal

from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.bronze.landing import land, plan_landing
from dmdelta.config import load_spec
from dmdelta.engine.task.task import open_task
from dmdelta.engine.verify.bronze_rows import image_of
from dmdelta.model.position import Position
from dmdelta.model.schema import StructureFrom, TableSchema
from dmdelta.segments import list_segments
from dmdelta.verification.compare import BronzeCount, BronzeRow
from dmdelta.verification.decoder import Decoder
from dmdelta.verification.events import LoggedEvent
from dmdelta.verification.raw_events import segment_events
from tests.support.golden import Recording, recording

JSON_NULL = "SQL NULL and JSON null, which it does not distinguish"
JSON_OTHER = "JSON with a value of an SQL type other than DECIMAL"
NO_NAMES = "ENUM or SET without names in the log"
_TYPES = {
    ("types", "TIMESTAMP of 0 or after 2038"): (0, 0, 1),
    ("types", "date that Python cannot represent"): (0, 0, 5),
    ("types", "negative TIME with a fraction"): (0, 0, 3),
    ("types", "text in the character set gbk"): (0, 0, 6),
    ("types", "text in the character set utf16"): (0, 0, 7),
}
_JSON_TYPES = {("types", JSON_OTHER): (0, 0, 2), ("types", JSON_NULL): (0, 0, 6)}
_CP1252 = {("types", "text in the character set cp1252 that Python does not decode"): (0, 0, 1)}
_MYSQL_8 = {
    ("changes", "compressed transaction"): (11, 24, 0),
    ("keyless", JSON_NULL): (0, 0, 4),
    ("odd_names täble `x`", JSON_NULL): (0, 0, 3),
    ("partial_json", JSON_NULL): (0, 0, 9),
    ("partial_json", "partial JSON"): (0, 0, 11),
    ("partial_json_compressed", "compressed transaction"): (1, 1, 0),
}
NOT_COVERED = {
    "mysql57": {
        ("key_types", NO_NAMES): (0, 0, 14),
        ("keyless", JSON_NULL): (0, 0, 4),
        ("types", NO_NAMES): (0, 0, 17),
        ("types", "text in the character set latin1 that Python does not decode"): (0, 0, 1),
        **_TYPES,
        **_JSON_TYPES,
    },
    "mysql80": {**_MYSQL_8, **_TYPES, **_JSON_TYPES, **_CP1252},
    "mysql97": {
        **_MYSQL_8,
        ("changes", "tagged GTID"): (0, 0, 24),
        ("types", "table map: ValueError"): (4, 8, 0),  # a VECTOR column
    },
    "mariadb": {("changes", "compressed row event"): (13, 24, 0), **_TYPES, **_CP1252},
}
"""By recording, table and reason: the events, rows and values that are not covered."""

_OFFSET = (1 << 40) - 1


def logged_events(recorded: Recording) -> Iterator[LoggedEvent]:
    """The row events of a recording, as mysql-replication reads them."""
    decoder = Decoder(mariadb=recorded.name == "mariadb")
    for segment in recorded.segments():
        yield from filter(None, map(decoder.feed, segment_events(segment)))


def bronze_rows(recorded: Recording) -> list[BronzeRow]:
    """The row changes of a recording as bronze has them, without Spark."""
    found: list[BronzeRow] = []
    structures: dict[int, TableSchema] = {}
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            for batch in decode_segment(stream, segment, recorded.options()):
                at = 0
                for count, seq, first, index in batch.runs:
                    gtid, _, schema, table, op, _, _, ddl, version, metadata = batch.shared[index]
                    if op == "schema":
                        structures[version] = TableSchema.from_json(ddl)
                    for number in range(count):
                        images = [
                            image_of(VariantVal(value, metadata) if value else None)
                            for value in (batch.before[at], batch.after[at])
                        ]
                        at += 1
                        if op in ("insert", "update", "delete"):
                            place = (segment.binlog_file, seq & _OFFSET)
                            name, known = (schema, table), structures.get(version)
                            found.append(BronzeRow(place, name, op, first + number, gtid, known, *images))
    return found


def counted(rows: list[BronzeRow]) -> list[BronzeCount]:
    """Rows by place, table and op."""
    numbers: dict[tuple[object, ...], int] = {}
    for row in rows:
        key = (row.place, row.table, row.op)
        numbers[key] = numbers.get(key, 0) + 1
    return [BronzeCount(*key, number) for key, number in numbers.items()]  # type: ignore[arg-type]


def land_recordings(folder: Path, names: Sequence[str]) -> Path:
    """The spec of a task whose sources are recordings, all of them in bronze."""
    document = {
        "name": "golden",
        "sources": [{"source-id": name, "binlog-dir": str(recording(name).folder)} for name in names],
        "lakehouse": {"root": str(folder / "lakehouse")},
    }
    file = folder / "golden.yml"
    file.write_text(yaml.safe_dump(document))
    task = open_task(load_spec(file))
    begin = Position(1, "binlog.000001", 4)
    for name in names:
        recorded = recording(name)
        source = task.landing_source(name, "mariadb" if name == "mariadb" else "mysql")
        # What the schema tracker of a running task would know: only 5.7 logs no column names.
        known = [StructureFrom(table, begin, schema) for table, (schema, *_) in recorded.known.items()]
        batch = plan_landing(list_segments(recorded.folder, name), None)
        assert batch is not None
        land(task.spark, source, batch, None, known if name == "mysql57" else ())
    return file
