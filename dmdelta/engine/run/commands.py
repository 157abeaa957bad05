"""Executes the commands of the control socket in a running task.

What is in memory is answered from memory. Requests that are recorded in dm_meta (operator overrides, snapshots,
decisions on locks) are written with a session of their own, before they take effect: a crash in between loses nothing.
"""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from dmdelta.checkpoint.store import display_order
from dmdelta.config import TaskSpec
from dmdelta.engine.apply.shard_locks import LockRow, ShardLocks, unlock
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.listener import obey, take_over
from dmdelta.engine.control.protocol import (
    ChangeState,
    Command,
    DecideOperator,
    ListLocks,
    ListOperators,
    ReadRelay,
    ReadStatus,
    ReadValidator,
    ShowCheckpoint,
    TakeSnapshot,
    Unlock,
    Update,
)
from dmdelta.engine.control.state import (
    ANSWER_SECONDS,
    QUIET_STATES,
    TARGET_STATES,
    Answer,
    Reason,
    Request,
    RunState,
    State,
    failed,
    process_name,
    updated,
)
from dmdelta.engine.relay.admin import RelayLog, relay_log
from dmdelta.engine.run.end_position import EndPosition, plan_reason
from dmdelta.engine.run.live_status import RunningSources, live_status
from dmdelta.engine.run.pipeline import SourcePipeline
from dmdelta.engine.snapshot.request import RequestedTable, request_snapshot
from dmdelta.engine.task.overrides import Decided, decide, list_operators
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.engine.telemetry.observations import Observations
from dmdelta.engine.telemetry.prometheus import RunMetrics, serving_metrics
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.engine.validation.admin import ValidatorStatus, show_status
from dmdelta.errors import StageFailed, as_ours
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.rules.operators import Verb
from dmdelta.sharding import Action

log = get_logger(__name__)
_ENDS = (State.STOPPED, State.FAILED)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What runs from a start or resume of the sources to their next end.

    Attributes:
        locks: of silver and of the sink; none if shard DDL is not coordinated.
        ends: where its sources are after its end; empty before.
    """

    pipelines: Sequence[SourcePipeline]
    locks: tuple[ShardLocks, ...]
    ends: Sequence[EndPosition] = ()


class RunCommands:
    """The commands of one run. Thread-safe.

    Attributes:
        state: the state of the run.
        observations: of its sources.
        restart: set to end the current attempt and start the next one, which reads dm_meta again.
    """

    def __init__(self, spec: TaskSpec, stop: StopRequest, counters: RunCounters) -> None:
        self.state = RunState()
        self.observations = Observations()
        self.restart = threading.Event()
        self._spec = spec
        self._stop = stop
        self._counters = counters
        self._opened = threading.Condition()
        self._task: Task | None = None
        self._attempt: Attempt | None = None
        self._operators: list[Decided] | None = None
        self._writing = threading.Lock()

    @property
    def has_begun(self) -> bool:
        """An attempt has started all sources."""
        return self._attempt is not None

    def begin(self, task: Task, attempt: Attempt) -> None:
        """Serve an attempt that starts now."""
        with self._opened:
            self._task, self._attempt, self._operators = task, attempt, None
            self._opened.notify_all()

    def finish(self, ends: Sequence[EndPosition]) -> None:
        """Record where the sources of the attempt are after its end."""
        with self._opened:
            if self._attempt is not None:
                self._attempt = replace(self._attempt, ends=ends)

    def ended(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """The run has ended, with `error` unless that is None: the exit of a context manager."""
        if error is None:
            self.state.publish(State.STOPPED, self.apart())
        elif self.state.now.state is not State.FAILED:
            self.state.publish(State.FAILED, as_ours(error, "the run"))

    def apart(self) -> Reason | None:
        """Which tables are not at the position of the others after the last attempt; None: none, or it runs."""
        attempt = self._attempt
        return plan_reason(attempt.ends) if attempt is not None else None

    def serving_metrics(self) -> AbstractContextManager[RunMetrics | None]:
        """Serve the status page and `/metrics`, if the spec enables them.

        Raises:
            ConfigError: the address is in use, or not one of this machine's.
        """
        freshness = self._spec.syncer.target_freshness.total_seconds()
        return serving_metrics(self._spec.metrics, self._counters, self.observations, self.status, freshness)

    def applied_rows(self) -> Mapping[str, int]:
        """The number of row changes applied in this run, by source."""
        rows: Counter[str] = Counter()
        for (source_id, *_), count in self._counters.counts().rows.items():
            rows[source_id] += count
        return rows

    def execute(self, command: Command) -> Any:
        """Execute a command, from any thread. Returns a record, or a list of records.

        Raises:
            DmdeltaError: the command had no effect, or its outcome is an error.
        """
        if isinstance(command, ReadStatus):
            return self.status().model_dump(mode="json")
        log.info("command received", request=command.command)
        began = time.monotonic()
        result = self._execute(command)
        log.info("command executed", request=command.command, seconds=round(time.monotonic() - began, 3))
        return result

    def _execute(self, command: Command) -> Any:
        match command:
            case ChangeState():
                return self.change_state(command.command)
            case Update():
                return self._update(command.settings)
            case TakeSnapshot():
                return self._snapshot(command.tables)
            case ListOperators():
                return self._list_operators()
            case DecideOperator():
                return self._decide(command)
            case ListLocks():
                return self._locks()
            case Unlock():
                return self._unlock(command)
            case ShowCheckpoint():
                return self._checkpoint()
            case ReadRelay():
                return self._relay()
            case ReadValidator():
                return self._validator()
        raise AssertionError(command)

    def status(self) -> TaskStatus:
        """The current status. Does not wait."""
        attempt, freshness = self._attempt, self._spec.syncer.target_freshness.total_seconds()
        running = RunningSources(
            pipelines=attempt.pipelines if attempt is not None else (),
            observations=self.observations,
            loads=self._counters.now().loads,
            freshness=freshness,
        )
        return live_status(self._spec.name, self.state.now, running)

    def change_state(self, request: Request) -> Answer:
        """Execute a request and wait until the task is in the requested state.

        Raises:
            StageFailed: it has failed, has ended, or is not in that state in time.
        """
        wanted = TARGET_STATES[request]
        obey(request, self._stop)
        reported = self.state.wait_for((wanted, *_ENDS), ANSWER_SECONDS)
        if reported is None:
            raise StageFailed(
                f"the task {self._spec.name} is not {wanted.value} after {ANSWER_SECONDS:.0f} s",
                hint="the request remains in effect; `dmdelta status` shows the state",
            )
        if reported.state is State.FAILED:
            raise failed(self._spec.name, reported.error, reported.hint)
        if reported.state is not wanted:
            raise StageFailed(f"the task {self._spec.name} has stopped", hint="start it with `dmdelta run`")
        note = reported.error if reported.state in QUIET_STATES else None
        return Answer(self._spec.name, reported.state, process_name(), note)

    def _update(self, settings: str) -> Any:
        task, _ = self._running()
        return updated(self._spec.name, settings, take_over(task, settings), process_name())

    def _snapshot(self, tables: Sequence[str]) -> list[RequestedTable]:
        task, attempt = self._running()
        requested = request_snapshot(_with_session(task), tables)
        for pipeline in attempt.pipelines:
            if pipeline.ad_hoc is not None:
                pipeline.ad_hoc.wake()
        return requested

    def _list_operators(self) -> list[Decided]:
        task, _ = self._running()
        with self._writing:
            if self._operators is None:
                self._operators = list_operators(_with_session(task))
            return self._operators

    def _decide(self, command: DecideOperator) -> list[Decided]:
        task, _ = self._running()
        verb = Verb(command.verb) if command.verb is not None else None
        position = Position.parse(command.position)
        with self._writing:
            decided = decide(_with_session(task), command.source, position, verb, command.statements)
            self._operators = None
        self.restart.set()
        return [decided]

    def _locks(self) -> list[LockRow]:
        _, attempt = self._running()
        return [row for locks in attempt.locks for row in locks.current()]

    def _unlock(self, command: Unlock) -> list[LockRow]:
        task, attempt = self._running()
        decided = unlock(_with_session(task), command.lock, Action(command.action), command.owner)
        for locks in attempt.locks:
            locks.poll_decisions()
        return decided

    def _checkpoint(self) -> list[dict[str, Any]]:
        _, attempt = self._running()
        return sorted(
            (row for pipeline in attempt.pipelines for row in pipeline.store.rows),
            key=display_order,
        )

    def _relay(self) -> list[RelayLog]:
        _, attempt = self._running()
        return [
            relay_log(pipeline.source_id, pipeline.relaying.folder, pipeline.landed_to)
            for pipeline in attempt.pipelines
        ]

    def _validator(self) -> list[ValidatorStatus]:
        task, _ = self._running()
        return show_status(_with_session(task))

    def _running(self) -> tuple[Task, Attempt]:
        """The task and its newest attempt; waits while the task starts.

        Raises:
            StageFailed: it does not start in time.
        """
        with self._opened:
            self._opened.wait_for(lambda: self._attempt is not None, ANSWER_SECONDS)
            if self._task is None or self._attempt is None:
                raise StageFailed(
                    f"the task {self._spec.name} is starting", hint="retry; `dmdelta status` shows its state"
                )
            return self._task, self._attempt


def _with_session(task: Task) -> Task:
    """The task with a session of its own: those of the stages have transaction identifiers as settings."""
    return replace(task, spark=clone_session(task.spark))
