"""Recorded binlogs in bronze, and what `verify` does not cover of them."""

from pathlib import Path

import yaml

from dmdelta.bronze.landing import land, plan_landing
from dmdelta.config import TaskSpec, load_spec
from dmdelta.engine.task import open_task
from dmdelta.model.position import Position
from dmdelta.model.schema import StructureFrom
from dmdelta.segments import list_segments
from tests.support.golden import recording

JSON_NULL = "SQL NULL and JSON null, which are read alike"
NO_NAMES = "ENUM or SET without names in the log"
NOT_COVERED = {
    "mysql57": {},
    "mysql80": {},
    "mysql97": {},
    "mariadb": {},
}
"""By recording and (table, reason): events, rows, values. What a recording's server writes never changes."""


def land_recording(folder: Path, name: str) -> Path:
    """The spec of a task whose source is a recording, all of it in bronze."""
    recorded = recording(name)
    document = {
        "name": "golden",
        "sources": [{"source-id": name, "binlog-dir": str(recorded.folder)}],
        "lakehouse": {"root": str(folder / "lakehouse")},
    }
    file = folder / f"{name}.yml"
    file.write_text(yaml.safe_dump(document))
    _land(load_spec(file), name)
    return file


def _land(spec: TaskSpec, name: str) -> None:
    recorded = recording(name)
    task = open_task(spec)
    source = task.landing_source(name, "mariadb" if name == "mariadb" else "mysql")
    begin = Position(1, "binlog.000001", 4)
    # What the schema tracker of a running task would know: only 5.7 names no columns.
    known = [StructureFrom(table, begin, schema) for table, (schema, *_) in recorded.known.items()]
    batch = plan_landing(list_segments(recorded.folder, name), None)
    assert batch is not None
    land(task.spark, source, batch, None, known if name == "mysql57" else ())
