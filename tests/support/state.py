"""Recorded states of a task: what a release has written, and the expected silver after the rest of the log.

The task has its own folder, and a spec with relative paths, so that it can be unpacked anywhere.
"""

import json
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from dmdelta.binlog.events.header import HEADER, EventType
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.segment import MAGIC

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
BINLOGS = FIXTURES / "state-binlogs"
"""The log of the recorded states: a shop on MySQL 8.0, from an earlier quickstart. It never changes."""
FIRST, SECOND = "binlog.000001", "binlog.000002"
EXPECTED = "expected.json"
TASK = "upgrade"
FAILED_BY = "the recorder"
"""The text in the task's recorded failure."""
SPEC = f"""\
name: {TASK}
sources:
  - source-id: shop
    binlog-dir: archive
    relay: {{dir: relay}}
lakehouse: {{root: lake}}
"""


@dataclass(frozen=True)
class State:
    """A task's folder."""

    folder: Path

    @property
    def spec(self) -> str:
        return str(self.folder / "task.yml")

    @property
    def lakehouse(self) -> Lakehouse:
        return Lakehouse(root=str(self.folder / "lake"))

    def begin(self) -> None:
        """Write the spec of a task that has not run."""
        (self.folder / "archive").mkdir(parents=True)
        (self.folder / "task.yml").write_text(SPEC)

    def log_has_grown_to(self, share: float) -> None:
        """Write the log's first file up to a commit, as if it were still growing; at 1, both files completely."""
        whole = (BINLOGS / FIRST).read_bytes()
        at, kind = len(MAGIC), EventType.FORMAT_DESCRIPTION
        while at < len(whole) and (at < len(whole) * share or kind != EventType.XID):
            _, kind, _, size, *_ = HEADER.unpack_from(whole, at)
            at += size
        (self.folder / "archive" / FIRST).write_bytes(whole[:at])
        if share == 1:
            (self.folder / "archive" / SECOND).write_bytes((BINLOGS / SECOND).read_bytes())

    def silver(self, spark: SparkSession) -> dict[str, list[str]]:
        """Every table's rows as text, with the version of the change that made each, in order."""
        tables = sorted(place.name for place in (self.folder / "lake" / "silver" / "shop").iterdir())
        return {table: self._rows(spark, self.lakehouse.silver("shop", table)) for table in tables}

    def changes(self, spark: SparkSession) -> list[str]:
        """Bronze's rows as text, in order, without their landing times."""
        return self._rows(spark, self.lakehouse.bronze)

    def _rows(self, spark: SparkSession, table: str) -> list[str]:
        frame = spark.table(table).drop("landed_at", "landed_on")
        return sorted(str(row[0]) for row in frame.selectExpr("to_json(struct(*))").collect())


def pack(state: State, archive: Path) -> None:
    """Pack the folder into an archive, without owner and times."""

    def nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:gz", compresslevel=9) as packed:
        packed.add(state.folder, arcname=".", filter=nobody)


def lay_down(archive: Path, folder: Path) -> tuple[State, dict[str, list[str]]]:
    """Unpack a recorded state; returns it and the expected final silver. File times are set to now (expiry)."""

    def fresh(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        return tarfile.data_filter(member.replace(mtime=time.time()), path)

    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter=fresh)  # noqa: S202 - `data_filter` sees each member
    return State(folder), json.loads((folder / EXPECTED).read_text())
