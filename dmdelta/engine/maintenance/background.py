"""Maintenance of the tables that a run writes, by the run itself, which pauses a table while it is compacted.

Delta rejects one of a concurrent compaction and change. So a silver table is paused while the others continue, and then
it catches up. Bronze is append-only, and whole days of it expire, which is no conflict.
"""

import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.schema import PARTITION_COLUMN
from dmdelta.checkpoint.store import CHECKPOINT
from dmdelta.engine.apply.scheduler import TableScheduler
from dmdelta.engine.apply.shard_locks import SHARD_DDL_LOCKS, SINK_SHARD_DDL_LOCKS
from dmdelta.engine.apply.table_state import Phase
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.table import CONTROL
from dmdelta.engine.ingest.schema_history import SCHEMA_HISTORY
from dmdelta.engine.maintenance.due import CHECK_INTERVAL, LastCheck, plan_check, plan_due
from dmdelta.engine.maintenance.retention import expire_bronze
from dmdelta.engine.snapshot.store import SNAPSHOT
from dmdelta.engine.task.overrides import BINLOG_OPERATORS
from dmdelta.engine.task.task import Task
from dmdelta.engine.validation.store import VALIDATOR
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.access.interface import PartitionBound
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable, maintained_silver
from dmdelta.lakehouse.maintenance.table import (
    MaintenancePlan,
    MaintenanceResult,
    maintain_metadata,
    maintain_table,
    plan_maintenance,
    read_table_health,
)
from dmdelta.lakehouse.session import maintenance_session
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.quality.results import QUALITY
from dmdelta.silver.apply.quarantine import Quarantine

log = get_logger(__name__)
POLL_SECONDS = 10.0
WORN_COMMITS = 50
"""After this many commits of the run a table's history is checked."""
SLOW_SECONDS = 600.0
"""The interval between passes over tables that get few commits."""
METADATA = (
    *(BINLOG_OPERATORS, CHECKPOINT, CONTROL, QUALITY, SCHEMA_HISTORY, SHARD_DDL_LOCKS, SINK_SHARD_DDL_LOCKS),
    *(SNAPSHOT, VALIDATOR),
)
"""The tables of dm_meta that a task may have, except its quarantines."""


@dataclass(slots=True)
class BackgroundMaintenance:
    """Maintains the silver tables of one source, and the tables that all sources share. Has its own session.

    Attributes:
        shared: this instance maintains bronze and dm_meta.
        worn: number of commits after which a table is checked.
    """

    task: Task
    scheduler: TableScheduler
    shared: bool
    worn: int = WORN_COMMITS
    spark: SparkSession = field(init=False)
    _batches: int = 0
    _vacuumed: dict[str, datetime] = field(default_factory=dict)
    _slow: float = field(default_factory=time.monotonic)
    _checks: dict[TableName, LastCheck] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spark = maintenance_session(self.task.spark)

    def follow(self, stop: StopRequest) -> None:
        """Maintain tables that need it until the stop is requested.

        Raises:
            DmdeltaError: a table that was paused does not catch up.
        """
        while not stop.wait(POLL_SECONDS):
            self.poll(stop)

    def interrupt(self) -> None:
        """Cancel the current operation, which then has changed nothing."""
        cancel_jobs(self.spark)

    def poll(self, stop: StopRequest) -> None:
        """Maintain the tables that need it now. Raises as `follow`."""
        for state in self.scheduler.states:
            if state.commits >= self.worn and not stop.requested:
                state.commits = 0
                self._silver(state.name, stop)
        if self.shared and not stop.requested:
            self._bronze(stop)
        if time.monotonic() - self._slow >= SLOW_SECONDS:
            self._slow = time.monotonic()
            if self.shared:
                self._expire(stop)
                for table in metadata_tables(self.task.lakehouse, self.task.spec.name):
                    self._maintain(MaintainedTable(table, Content.METADATA), stop)
            self._seldom_written(stop)

    def _seldom_written(self, stop: StopRequest) -> None:
        """Maintain silver tables that get few commits, and those that earlier runs have written."""
        context, points = self.scheduler.context, self.scheduler.tables.points
        states = {state.name: state for state in self.scheduler.states}
        sources = defaultdict[TableName, list[TableName]](list)
        for name in sorted(points.tables | states.keys()):
            if context.rules.wanted(*name):
                sources[context.table(name).route.name].append(name)
        written = {name: [states[one] for one in sources[name] if one in states] for name in sources}
        commits = {name: sum(state.commits for state in written[name]) for name in sources}
        for name in plan_due(commits, self._checks, datetime.now(timezone.utc)):
            if stop.requested:
                return
            for state in written[name]:
                state.commits = 0
            # Only a table that follows the log can be paused; any shard of a merged table will do.
            paused = {state.name for state in written[name] if state.phase is not Phase.FOLLOWING}
            self._silver(next((one for one in sources[name] if one not in paused), sources[name][0]), stop)

    def _silver(self, name: TableName, stop: StopRequest) -> None:
        """Maintain the silver table of a source table, and its quarantine."""
        scheduler, now = self.scheduler, datetime.now(timezone.utc)
        target = scheduler.context.table(name)
        quarantine = MaintainedTable(Quarantine.of(target).place, Content.QUARANTINE)
        tables = (maintained_silver(self.spark, target.place), quarantine)
        plans = [(table, self._plan(table, stop)) for table in tables]
        self._checks[target.route.name] = plan_check([plan for _, plan in plans], now)
        worn = [(table, plan) for table, plan in plans if plan.actions]
        if not worn:
            return
        # The quarantine, too: the turns of the table write it.
        with scheduler.maintenance(name, stop) as ours, scheduler.tables.turns(self.spark, [name]):
            for table, plan in worn:
                if ours and not stop.requested:
                    self._execute(table, plan, stop)

    def _bronze(self, stop: StopRequest) -> None:
        landed = self.scheduler.tables.counters.batches
        if landed - self._batches >= self.worn:
            self._batches = landed
            # Older days were compacted while they were new.
            yesterday = (datetime.now(timezone.utc) - timedelta(days=1)).date()
            bronze = MaintainedTable(self.task.lakehouse.bronze, Content.BRONZE)
            self._maintain(bronze, stop, PartitionBound(PARTITION_COLUMN, yesterday))

    def _expire(self, stop: StopRequest) -> None:
        bronze = self.task.lakehouse.bronze
        try:
            expired = expire_bronze(self.task, self.spark)
        except DmdeltaError as error:
            self._failed(bronze, error, stop)
            return
        if expired is not None:
            self.scheduler.tables.counters.maintained("expire")
            log.info("bronze rows expired", table=bronze, before=str(expired.before), rows=expired.rows)

    def _maintain(self, table: MaintainedTable, stop: StopRequest, since: PartitionBound | None = None) -> None:
        if not stop.requested:
            self._execute(table, self._plan(table, stop), stop, since)

    def _plan(self, table: MaintainedTable, stop: StopRequest) -> MaintenancePlan:
        try:
            wear = read_table_health(self.spark, table)
        except DmdeltaError as error:
            self._failed(table.table, error, stop)
            return MaintenancePlan(again_at=datetime.now(timezone.utc) + CHECK_INTERVAL)
        if wear is None:
            return MaintenancePlan()
        # The history of a busy table only goes back some hours.
        known = replace(wear, vacuumed_at=wear.vacuumed_at or self._vacuumed.get(table.table))
        return plan_maintenance(known, datetime.now(timezone.utc))

    def _execute(
        self, table: MaintainedTable, plan: MaintenancePlan, stop: StopRequest, since: PartitionBound | None = None
    ) -> None:
        """Run the planned maintenance."""
        if not plan.actions:
            return
        try:
            done = self._perform(table, plan, since)
        except DmdeltaError as error:
            self._failed(table.table, error, stop)
            return
        for action in plan.actions:
            self.scheduler.tables.counters.maintained(action)
        if plan.vacuum:
            self._vacuumed[table.table] = datetime.now(timezone.utc)
        log.info("maintenance finished", **asdict(done))

    def _perform(
        self, table: MaintainedTable, plan: MaintenancePlan, since: PartitionBound | None
    ) -> MaintenanceResult:
        if table.content is Content.METADATA:
            return maintain_metadata(self.spark, table, plan)
        return maintain_table(self.spark, table, plan, since)

    def _failed(self, table: str, error: DmdeltaError, stop: StopRequest) -> None:
        """Count and report a failure: the table's rows are unchanged, and it is retried later."""
        if not stop.requested:
            self.scheduler.tables.counters.maintained("failure")
            log.warning("maintenance failed, retrying later", table=table, why=error.message, hint=error.hint)


def metadata_tables(lakehouse: Lakehouse, task: str) -> list[str]:
    """The tables of dm_meta that a task may have, except its quarantines."""
    return [table.place(lakehouse, task) for table in METADATA]
