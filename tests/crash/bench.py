"""One row of the fault matrix: a task that meets a fault, resumes, and is checked."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.checkpoint import load_points
from dmdelta.cli.main import execute
from dmdelta.config import TaskSpec, load_spec
from dmdelta.ddl.types.silver_types import SHARD
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.maintenance.command import maintain
from dmdelta.engine.run.runner import RunOptions, run_task
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.sharding import Shard
from tests.crash.rows import AFTERWARDS, MAINTAIN, MERGED, OF_SHARDS, SHARDS, TABLES, Row
from tests.support.diff import assert_same
from tests.support.forgetting import forget_history
from tests.support.oracle import bronze_vs_binlog
from tests.support.relaying import wait_until
from tests.support.servers import Server
from tests.support.sinking import table_differences, union_differences
from tests.support.task import SinkTask, Task, TaskProcess

MEET_SECONDS = 120.0
"""The time limit until a point is passed."""
END_SECONDS = 180.0


@dataclass
class Bench:
    """A task over tables of its own.

    Attributes:
        number: grows with each cell; statements have it as {n}.
        since: where the cell's log begins.
        settled: the previous cell has passed: silver equals the source.
    """

    spark: SparkSession
    row: Row
    server: Server
    target: Server
    folder: Path
    number: int = 0
    since: tuple[str, int] = ("", 0)
    settled: bool = False
    task: Task = field(init=False)

    def begin(self) -> None:
        """Prepare a cell: the tables exist, and what the fault requires is in silver."""
        if not self.number or self.row.loads:
            self._make_task()
        self.number += 1000
        if self.row.loads:
            return
        if self.row.before or not self.settled:
            self.write(self.row.before)
            self.task.catch_up()
        self.settled = False
        if self.row.arguments == MAINTAIN:
            self.write(self.row.statements)
            self.task.catch_up()

    def _make_task(self) -> None:
        database = self.server.fresh_database("faults")
        folder = self.folder / f"task-{self.number}"
        kind = SinkTask if self.row.sinks else Task
        self.task = kind(folder, self.server, database, mode="all" if self.row.loads else "incremental")
        if isinstance(self.task, SinkTask):
            self.task.target = self.target
        if self.row.shards:
            routed = {"schema-pattern": database, "target-schema": database, "target-table": MERGED}
            self.task.settings["routes"] = {"parts": {**routed, "table-pattern": "part_*"}}
            self.task.settings["shard-mode"] = self.row.shards
        if not self.row.loads:  # a task with a start position loads nothing
            self.task.start_here()
        self.server.execute(*TABLES, *(OF_SHARDS if self.row.shards else ()), database=database)

    def write(self, statements: Sequence[str]) -> None:
        """In one session: some of the statements change how the others are logged."""
        self.server.execute(
            *(text.replace("{n}", str(self.number)) for text in statements), database=self.task.database
        )

    def provoke(self, fault: str) -> None:
        """The next process that passes the point meets the fault."""
        if self.row.loads:
            self.write(self.row.statements)
        self.server.execute("FLUSH BINARY LOGS")
        self.since = self.server.position()[:2]
        if not self.row.loads and self.row.arguments != MAINTAIN:
            self.write(self.row.statements)
        self.task.arm(self.row.point, fault, self.row.nth)

    @property
    def met(self) -> bool:
        """A process has passed the point."""
        return not self.task.failpoint.exists()

    def attempt(self) -> tuple[int, str]:
        """Run the row's command to its end: exit code and stderr."""
        if self.row.executors:
            with self.task.process(*self.row.arguments[1:]) as process:
                return process.wait(END_SECONDS), process.whole_log()
        said = io.StringIO()
        with self.task.environment(), contextlib.redirect_stderr(said):
            spec = str(self.task.write_spec())
            code = execute([self.row.arguments[0], spec, *self.row.arguments[1:]])
        return code, said.getvalue()

    @contextmanager
    def hanging(self) -> Iterator[tuple[StopRequest, "Future[object]"]]:
        """The task in a thread, hanging at the point; it is released at the end of the block at the latest."""
        stop = StopRequest()
        with self.task.environment(), ThreadPoolExecutor(1) as pool:
            ended = pool.submit(self._work, load_spec(self.task.write_spec()), stop)
            try:
                wait_until(lambda: self.task.hangs.exists() or ended.done(), MEET_SECONDS)
                if not self.task.hangs.exists():
                    ended.result()
                yield stop, ended
            finally:
                self.task.hangs.unlink(missing_ok=True)

    def _work(self, spec: TaskSpec, stop: StopRequest) -> object:
        """The row's command as a call; a run can be stopped."""
        if self.row.arguments == MAINTAIN:
            return maintain(spec, "*", lambda _: None)
        safely = "--safe-mode" in self.row.arguments
        return run_task(spec, RunOptions(until_caught_up=True, safe_mode=safely), lambda _: None, stop)

    def wait_hanging(self, process: TaskProcess) -> None:
        """Wait until a process hangs at the point."""
        wait_until(lambda: self.task.hangs.exists() or process.poll() is not None, MEET_SECONDS)
        assert self.task.hangs.exists(), process.log()

    def disarm(self) -> None:
        """After a failed cell: remove what could affect the next one."""
        for file in (self.task.failpoint, self.task.hangs):
            file.unlink(missing_ok=True)

    def heal(self) -> None:
        """The operator's action: start the command again."""
        if self.row.forgets:
            self._forget()
            self.write(AFTERWARDS)
        code, said = self.attempt()
        assert code == 0, said
        if self.row.arguments == MAINTAIN:
            self.write(AFTERWARDS)
            self.task.catch_up()

    def _forget(self) -> None:
        """Every silver table's log begins at its present state: the tags of earlier commits are gone."""
        for log in (self.task.root / "silver" / self.task.database).glob("*/_delta_log"):
            forget_history(self.spark, log.parent)

    def silver_of(self, table: str) -> DataFrame:
        """Silver's rows of a table of the source; for a shard, its part of the merged table."""
        lakehouse = Lakehouse(root=str(self.task.root))
        if table not in SHARDS:
            return self.spark.table(lakehouse.silver(self.task.database, table))
        shard = Shard(self.task.source_id, self.task.database, table)
        return self.spark.table(lakehouse.silver(self.task.database, MERGED)).where(F.col(SHARD) == str(shard))

    def look(self) -> None:
        """Silver and target equal the source, bronze has the cell's log once, the checkpoint is of an orderly stop."""
        task, lakehouse = self.task, Lakehouse(root=str(self.task.root))
        tables = [table for (table,) in task.server.query("SHOW TABLES", database=task.database)]
        assert_same(task.server, task.database, tables, self.silver_of)
        file, offset = self.since
        bronze = self.spark.table(lakehouse.bronze).where("op <> 'read'")
        bronze = bronze.where(f"binlog_file > '{file}' OR (binlog_file = '{file}' AND binlog_pos >= {offset})")
        wrong = bronze_vs_binlog(task.server, bronze, [task.database], self.since)
        assert not wrong, "\n".join(wrong[:20])
        points = load_points(self.spark, lakehouse, task.name, task.source_id)
        assert points is not None
        assert points.reason.is_orderly
        assert points.exit_point is None
        here = points.global_point.position
        assert (here.binlog_file, here.offset) == task.server.position()[:2]
        if isinstance(task, SinkTask):
            merged = SHARDS if self.row.shards else ()
            for table in set(tables) - set(merged):
                assert table_differences(task.server, task.target, task.database, table) == []
            if merged:
                shards = [(task.server, task.database, shard) for shard in merged]
                assert union_differences(shards, task.target, task.database, MERGED) == []
        self.settled = True
