"""Care for the tables that a run writes: by the run itself, which leaves a table alone while it is compacted.

Of a compaction and a change at the same time Delta refuses one. So a silver table is taken aside, the others go on, and
then it catches up. Bronze is added to,
and whole days of it expire, which is no conflict.
"""

import time
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.schema import PARTITION_COLUMN
from dmdelta.engine.expiring import expire_bronze
from dmdelta.engine.stop import StopRequest
from dmdelta.engine.table_scheduler import TableScheduler
from dmdelta.engine.table_state import TableState
from dmdelta.engine.task import Task
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.care import CarePlan, care_for, plan_care, read_wear
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.session import care_session
from dmdelta.logging import get_logger
from dmdelta.silver.checks import no_checks
from dmdelta.silver.quarantine import Quarantine

log = get_logger(__name__)
LOOK_SECONDS = 10.0
WORN_COMMITS = 50
"""After so many commits of this run a table's history is asked what it needs."""
SLOW_SECONDS = 600.0
"""How often that is asked of the tables that are written seldom."""
METADATA = (
    "binlog_operators",
    "checkpoint",
    "control",
    "quality",
    "schema_history",
    "shard_ddl_locks",
    "snapshot",
    "validator",
)
"""The tables of dm_meta that a task may have, without its name before them, but for its quarantines."""


@dataclass(slots=True)
class TableCare:
    """Cares for the silver tables of one source, and for what all sources share. Has a session of its own.

    Attributes:
        shared: bronze and dm_meta are this one's.
        worn: after so many commits a table is looked at.
    """

    task: Task
    scheduler: TableScheduler
    shared: bool
    worn: int = WORN_COMMITS
    spark: SparkSession = field(init=False)
    _batches: int = 0
    _vacuumed: dict[str, datetime] = field(default_factory=dict)
    _slow: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.spark = care_session(self.task.spark)

    def follow(self, stop: StopRequest) -> None:
        """Care for what needs it until the stop comes.

        Raises:
            DmdeltaError: a table that was taken aside does not catch up.
        """
        while not stop.wait(LOOK_SECONDS):
            self.look(stop)

    def interrupt(self) -> None:
        """Cancel what is under way, which then has changed nothing."""
        self.spark.interruptAll()

    def look(self, stop: StopRequest) -> None:
        """Care for what needs it now. Raises as `follow`."""
        for state in self.scheduler.states:
            if state.commits >= self.worn and not stop.requested:
                self._silver(state, stop)
        if self.shared and not stop.requested:
            self._bronze(stop)
        if self.shared and time.monotonic() - self._slow >= SLOW_SECONDS:
            self._slow = time.monotonic()
            self._expire(stop)
            for table in metadata_tables(self.task.lakehouse, self.task.spec.name):
                self._care_for(table, stop)

    def _silver(self, state: TableState, stop: StopRequest) -> None:
        scheduler, name = self.scheduler, state.name
        state.commits = 0
        target = scheduler.side.table(name)
        plan = self._plan(target.place, stop)
        if plan.deeds:
            with scheduler.maintenance(name, stop) as ours, scheduler.tables.turns(self.spark, [name]):
                if ours:
                    self._do(target.place, plan, stop)
        if scheduler.side.checks is not no_checks:
            self._care_for(Quarantine.of(target).place, stop)

    def _bronze(self, stop: StopRequest) -> None:
        landed = self.scheduler.tables.tally.batches
        if landed - self._batches >= self.worn:
            self._batches = landed
            # What is older was compacted while it was new.
            since = (datetime.now(timezone.utc) - timedelta(days=1)).date()
            self._care_for(self.task.lakehouse.bronze, stop, f"{PARTITION_COLUMN} >= DATE'{since}'")

    def _expire(self, stop: StopRequest) -> None:
        bronze = self.task.lakehouse.bronze
        try:
            expired = expire_bronze(self.task, self.spark)
        except DmdeltaError as error:
            self._failed(bronze, error, stop)
            return
        if expired is not None:
            self.scheduler.tables.tally.cared_for("expire")
            log.info("bronze rows expired", table=bronze, before=str(expired.before), rows=expired.rows)

    def _care_for(self, table: str, stop: StopRequest, where: str = "") -> None:
        if not stop.requested:
            self._do(table, self._plan(table, stop), stop, where)

    def _plan(self, table: str, stop: StopRequest) -> CarePlan:
        try:
            wear = read_wear(self.spark, table)
        except DmdeltaError as error:
            self._failed(table, error, stop)
            return CarePlan()
        if wear is None:
            return CarePlan()
        # A busy table's history goes back some hours only.
        known = replace(wear, vacuumed_at=wear.vacuumed_at or self._vacuumed.get(table))
        return plan_care(known, datetime.now(timezone.utc))

    def _do(self, table: str, plan: CarePlan, stop: StopRequest, where: str = "") -> None:
        """Do what a table needs."""
        if not plan.deeds:
            return
        try:
            done = care_for(self.spark, table, plan, where)
        except DmdeltaError as error:
            self._failed(table, error, stop)
            return
        for deed in plan.deeds:
            self.scheduler.tables.tally.cared_for(deed)
        if plan.vacuum:
            self._vacuumed[table] = datetime.now(timezone.utc)
        log.info("table cared for", **asdict(done))

    def _failed(self, table: str, error: DmdeltaError, stop: StopRequest) -> None:
        """Count a failure and tell it: the table's rows are as they were, and it is tried again later."""
        if not stop.requested:
            self.scheduler.tables.tally.cared_for("failure")
            log.warning("table care failed, is tried again", table=table, why=error.message, hint=error.hint)


def metadata_tables(lakehouse: Lakehouse, task: str) -> list[str]:
    """The tables of dm_meta that a task may have, but for its quarantines."""
    return [lakehouse.metadata(f"{task}_{name}") for name in METADATA]
