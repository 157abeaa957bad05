"""verify: bronze of recorded binlogs against mysql-replication's reading of the same files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from dmdelta.bronze.landing import land, open_bronze, plan_landing
from dmdelta.config import TaskSpec, load_spec
from dmdelta.engine.task import open_task
from dmdelta.engine.verification import Verified, VerifyRequest, verify
from dmdelta.lakehouse.creation import make_schema
from dmdelta.model.position import Position
from dmdelta.model.schema import StructureFrom
from tests.support.golden import SERVERS, recording


def landed_spec(folder: Path, names: Sequence[str]) -> TaskSpec:
    """A task whose sources are recordings, all of them in bronze."""
    sources = [{"source-id": name, "binlog-dir": str(recording(name).folder)} for name in names]
    document = {"name": "golden", "sources": sources, "lakehouse": {"root": str(folder / "lakehouse")}}
    file = folder / "golden.yml"
    file.write_text(yaml.safe_dump(document))
    spec = load_spec(file)
    task = open_task(spec)
    for name in names:
        recorded = recording(name)
        source = task.landing_source(name, "mariadb" if name == "mariadb" else "mysql")
        begin = Position(1, "binlog.000001", 4)
        known = [StructureFrom(table, begin, schema) for table, (schema, *_) in recorded.known.items()]
        batch = plan_landing(list(recorded.segments()), None)
        assert batch is not None
        land(task.spark, source, batch, None, known if name == "mysql57" else ())
    return spec
