"""What a look-up in a history, a read of dm_meta and a flush of the checkpoint cost with delta-rs and with Spark.

    make bench-metadata                              # writes METADATA.md

One table of checkpoints, written by both implementations in turn, and a history of 1,000 commits. The operations take
turns; of the rounds the last one counts.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from itertools import count
from typing import Any

from benchmarks.cpu import children, cpu_seconds
from benchmarks.page import measured_by, write_page
from dmdelta.checkpoint.store import CHECKPOINT
from dmdelta.lakehouse.access.commit_log import newest_own_commit
from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from dmdelta.lakehouse.access.interface import MetadataAccess, NewestBy, one_of
from dmdelta.lakehouse.access.local_root import local_folder
from dmdelta.lakehouse.access.spark import SparkTable
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.model.position import Position

TABLES, LONG, ROUNDS, REPEATS = 20, 1000, 3, 20
APP = "dmdelta:bench:one:checkpoint"
HEAD = ["| operation | with | CPU ms of the JVM | CPU ms of Python | ms |", "| --- | --- | ---: | ---: | ---: |"]
_VERSIONS = count(1)


def flush(table: MetadataAccess) -> None:
    """One commit of a global row and the rows of three of the tables."""
    number = next(_VERSIONS)
    at = Position(1, "binlog.000001", number)
    now = datetime.now(timezone.utc)
    common = {"id": "one", "binlog_pos": number, "flush_id": number, "reason": "interval", "updated_at": now}
    rows: list[dict[str, Any]] = [{**common, "cp_schema": "", "cp_table": "", "is_global": True}]
    names = random.Random(number).sample(range(TABLES), 3)
    rows += [{**common, "cp_schema": "shop", "cp_table": f"t{name}", "is_global": False} for name in names]
    table.append(rows, CommitTag(APP, number, "bench", "one", "run", at, at))


def operations(short: MetadataAccess, long: MetadataAccess) -> dict[str, Callable[[], object]]:
    by = NewestBy(CHECKPOINT.keys, CHECKPOINT.order)
    return {
        "newest own commit": lambda: newest_own_commit(short.commits, APP),
        f"newest own commit, {LONG} commits": lambda: newest_own_commit(long.commits, APP),
        "newest row of each key": lambda: short.newest(by, [one_of("id", "one")]),
        "flush": lambda: flush(short),
    }


def measure(kinds: dict[tuple[str, str], Callable[[], object]]) -> dict[tuple[str, str], tuple[float, float, float]]:
    """CPU ms of the JVM and of Python, and ms, by operation and implementation."""
    (jvm,) = children("java")
    found = {}
    for number in range(ROUNDS):
        for kind in random.Random(number).sample(list(kinds), len(kinds)):
            before = (cpu_seconds(jvm), cpu_seconds(os.getpid()), time.perf_counter())
            for _ in range(REPEATS):
                kinds[kind]()
            after = (cpu_seconds(jvm), cpu_seconds(os.getpid()), time.perf_counter())
            jvm_ms, python_ms, whole = (1000 * (b - a) / REPEATS for a, b in zip(before, after, strict=True))
            found[kind] = (jvm_ms, python_ms, whole)
    return {kind: found[kind] for kind in kinds}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        spark = open_session("dmdelta metadata benchmark")
        lakehouse = Lakehouse(root=folder)
        tables: dict[str, list[MetadataAccess]] = {"delta-rs": [], "Spark": []}
        for name, flushes in (("short", 40), ("long", LONG)):
            CHECKPOINT.of(spark, lakehouse, name).create()
            place = CHECKPOINT.place(lakehouse, name)
            at = local_folder(place)
            assert at is not None
            tables["delta-rs"].append(LocalTable(place, at))
            tables["Spark"].append(SparkTable(spark, place, CHECKPOINT.columns))
            for _ in range(flushes):
                flush(tables["delta-rs"][-1])
        pairs = {name: operations(*both) for name, both in tables.items()}
        found = measure({(kind, name): pairs[name][kind] for kind in pairs["Spark"] for name in pairs})
    lines = [
        f"| {kind} | {name} | {jvm:.0f} | {own:.1f} | {ms:.1f} |" for (kind, name), (jvm, own, ms) in found.items()
    ]
    setting = f"{measured_by('python -m benchmarks.metadata')}, one after the other."
    write_page("METADATA.md", "Histories and dm_meta", setting, [*HEAD, *lines])


if __name__ == "__main__":
    main()
