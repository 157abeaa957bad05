"""Runs a task: the pipelines of all sources in parallel until they are done or a stop is requested."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from dmdelta.checkpoint import FlushReason
from dmdelta.config import TaskSpec
from dmdelta.engine.apply.shard_locks import ShardLocks, open_shard_locks
from dmdelta.engine.control.cancellation import StopRequest, stopping_on_signals
from dmdelta.engine.control.listener import RetryDecision, plan_after_failure, serve_commands
from dmdelta.engine.control.socket_server import serving_commands
from dmdelta.engine.control.state import Reason, State
from dmdelta.engine.control.table import ControlTable
from dmdelta.engine.relay.supervisor import Relaying, open_relaying, stopped_on_failure
from dmdelta.engine.run.assembly import open_pipeline
from dmdelta.engine.run.commands import Attempt, RunCommands
from dmdelta.engine.run.end_position import end_position
from dmdelta.engine.run.live_views import open_views
from dmdelta.engine.run.pipeline import SourcePipeline, stats_of
from dmdelta.engine.run.restart import begin_source
from dmdelta.engine.run.stopping import reporting_stop
from dmdelta.engine.run.warnings import warn_of_risks
from dmdelta.engine.task.live_settings import LiveSettings
from dmdelta.engine.task.task import Task, open_suites, open_task, with_safe_mode
from dmdelta.engine.telemetry.counters import Progress, RunCounters, RunSummary
from dmdelta.engine.telemetry.prometheus import RunMetrics
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.errors import DmdeltaError, QualityError, SchemaError, StageFailed
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.sharding import Coordination, ShardSides
from dmdelta.sharding import Mode as ShardMode
from dmdelta.sink.plan.shard_columns import holds_all
from dmdelta.source.relay.relay_dir import locked_for_run
from dmdelta.source.relay.relay_task import Start
from dmdelta.source.relay.start_position import StartTime

log = get_logger(__name__)
WATCH_SECONDS = 0.2
SOURCES_AT_ONCE = 4
"""Maximum number of sources that are opened in parallel."""
DRAIN_SECONDS = 10.0
"""How long a stop or pause waits until all tables and the sink are at one position, as in DM. Then the work in flight
is cancelled, and the next start continues each table where it is."""
GRACE_SECONDS = 3.0
"""How long a restart, and a stop after a failure, wait for work in flight."""
INTERRUPT_SECONDS = 10.0
VIEWS_SECONDS = 10.0
"""How long a stop waits for live views, which the next run replaces otherwise."""
HEALTHY_SECONDS = 600.0
"""After this time without a failure, the next one counts as the first."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """
    Attributes:
        until_caught_up: end when everything that the sources had at the start is in silver.
        safe_mode: apply all changes in safe mode.
        start_time: restart at the first transaction that was committed then or later.
        remove_meta: reset the task and restart: at `start_time`, else where its first start did.
    """

    until_caught_up: bool = False
    safe_mode: bool = False
    start_time: datetime | None = None
    remove_meta: bool = False

    def restart_at(self, first: Start) -> Start | StartTime | None:
        """Where a source with the given `first` start restarts; None to resume."""
        if self.start_time is not None:
            return StartTime(self.start_time)
        return first if self.remove_meta else None


def run_task(
    spec: TaskSpec,
    options: RunOptions,
    report: Callable[[Progress], None],
    stop: StopRequest | None = None,
    follow: Callable[[Callable[[], TaskStatus]], None] | None = None,
) -> RunSummary:
    """Run until caught up or stopped.

    Args:
        report: called with the run's progress from the stages' threads.
        stop: lets another thread stop the run; signals always do.
        follow: called once, before Spark starts, with a function that reads the run's status from any thread.

    Raises:
        DmdeltaError: a stage failed permanently; the checkpoint then has an exit point.
    """
    stop = stop or StopRequest()
    counters = RunCounters(report)
    ends = options.until_caught_up or spec.task_mode == "full"
    with stopping_on_signals(stop), ExitStack() as opened:
        relayings = [opened.enter_context(open_relaying(spec, source, until_caught_up=ends)) for source in spec.sources]
        commands = RunCommands(spec, stop, counters)
        if follow is not None:
            follow(commands.status)
        opened.enter_context(serving_commands(spec, commands))
        opened.push(commands.ended)
        task = _open_task(with_safe_mode(spec) if options.safe_mode else spec, relayings)
        for relaying in relayings:
            restart_at = options.restart_at(relaying.task.start)
            if restart_at is not None:
                begin_source(task, relaying, restart_at)
        control = opened.enter_context(serve_commands(task, stop, commands.restart.set, commands.apart))
        metrics = opened.enter_context(commands.serving_metrics())
        following = _Following(
            task=task,
            relayings=relayings,
            counters=counters,
            metrics=metrics,
            stop=stop,
            ends=ends,
            commands=commands,
        )
        stopped = _follow_with_retries(following, control)
    return RunSummary(counters.now(), stopped=stopped)


def _open_task(spec: TaskSpec, relayings: Sequence[Relaying]) -> Task:
    """The task with its suites. While the JVM starts, they are read (Great Expectations takes seconds to import), and
    the operator is warned of risks.
    """
    with ThreadPoolExecutor(2, thread_name_prefix="open") as pool:
        suites, warned = pool.submit(open_suites, spec), pool.submit(warn_of_risks, spec, relayings)
        task = open_task(spec)
    warned.result()
    return replace(task, suites=suites.result())


@dataclass(frozen=True, slots=True)
class _Following:
    """The sources to follow; `ends`: until everything that they had at the start is in silver."""

    task: Task
    relayings: Sequence[Relaying]
    counters: RunCounters
    metrics: RunMetrics | None
    stop: StopRequest
    ends: bool
    commands: RunCommands


def _follow_with_retries(following: _Following, control: ControlTable) -> bool:
    """Follow the sources through pauses and transient failures; True if a stop was requested.

    Raises:
        DmdeltaError: a permanent failure.
    """
    stop, commands, failures = following.stop, following.commands, 0
    publish = partial(_publish, following, control)
    commands.state.publish(State.RUNNING)
    while True:
        began = time.monotonic()
        try:
            stopped_by_request = stop.requested or _follow(following, control)
        except DmdeltaError as error:
            failures = 1 if time.monotonic() - began > HEALTHY_SECONDS else failures + 1
            if stop.failure is None:
                after = plan_after_failure(error, failures, ends=following.ends, has_begun=commands.has_begun)
            else:  # of the thread that polls for commands: the run cannot be resumed
                after = RetryDecision(State.FAILED)
            publish(after.state, error)
            if after.delay is None:
                raise
            log.warning("task failed, retrying automatically", in_s=after.delay, why=error.message, hint=error.hint)
            stopped_by_request = stop.wait(after.delay)
            if not stopped_by_request:
                publish(State.RUNNING)
                continue
        if stop.is_pause:
            publish(State.PAUSED, commands.apart())
            log.warning("paused", task=following.task.spec.name)
            ends = stopped_by_request = not stop.wait_for_resume()
        else:
            ends = not stopped_by_request or stop.requested
        if ends and stop.failure is not None:  # it came while no source was running
            publish(State.FAILED, stop.failure)
            raise stop.failure
        if ends:
            return stopped_by_request
        # Also after a resume that came before the pause was complete, and after a restart for operators.
        if commands.state.now.state is not State.RUNNING:
            publish(State.RUNNING)


def _publish(
    following: _Following, control: ControlTable, state: State, error: DmdeltaError | Reason | None = None
) -> None:
    """Publish the state of the run: in dm_meta, to the commands, and as a metric.

    Raises:
        DmdeltaError: dm_meta cannot be written; not while the run reports a failure.
    """
    try:
        control.publish(state, error)  # first: what a command answers is recorded
    except DmdeltaError as unpublished:
        if not isinstance(error, DmdeltaError):
            raise
        # It may have the same cause, such as a JVM that ended. The first failure is the one to report.
        log.warning("state not recorded", state=state.value, why=unpublished.message, hint=unpublished.hint)
    following.commands.state.publish(state, error)
    if following.metrics is not None:
        following.metrics.publish(state)


def _follow(following: _Following, control: ControlTable) -> bool:
    """Run all sources' pipelines until they are done, or a stop, pause or restart is requested; True then.

    Raises:
        Fenced: another run, or a command that excludes runs, is working.
        DmdeltaError: a stage failed; the checkpoint then has an exit point. For a run that ends by itself, also the
            error of a stopped table.
    """
    with ExitStack() as held:
        for relaying in following.relayings:
            held.enter_context(locked_for_run(relaying.folder))
        return _follow_locked(following, control)


def _follow_locked(following: _Following, control: ControlTable) -> bool:
    stop, commands, task, attempt = following.stop, following.commands, following.task, StopRequest()
    commands.restart.clear()  # before the operators are read
    sides = _open_sides(task.spec)
    with stopped_on_failure(following.relayings):
        pipelines = _open_pipelines(following, attempt, sides)
        locks, views = open_shard_locks(task, sides), open_views(task, pipelines)
    for pipeline in pipelines:
        pipeline.start()
    if views is not None:
        views.start("views", attempt)
    commands.begin(task, Attempt(pipelines, locks))
    reporting = _AttemptControl(task.live_settings, control, commands, locks)
    _watch(pipelines, attempt, stop, reporting)
    stopped_by_request = (stop.requested or commands.restart.is_set()) and attempt.failure is None
    restarts = commands.restart.is_set() and not stop.requested
    with reporting_stop(pipelines):
        _end(pipelines, attempt, GRACE_SECONDS if restarts else DRAIN_SECONDS)
    if views is not None:
        views.end(0 if restarts else _seconds_for_views(attempt, stopped=stopped_by_request))
    commands.finish([end_position(pipeline) for pipeline in pipelines])
    failure = attempt.failure or stop.failure
    if failure is not None:
        raise failure  # first: what follows may fail for the same reason
    for side in locks:
        side.poll()
    if commands.restart.is_set() and reporting.last_reported:
        control.publish(State.RUNNING)  # the next attempt reports the tables that are still stopped
    if following.ends and not stopped_by_request:
        sinks = [pipeline.sinking.failure for pipeline in pipelines if pipeline.sinking is not None]
        for error in [*_stopped(pipelines).values(), *filter(None, sinks)]:
            raise error
    return stopped_by_request


def _seconds_for_views(attempt: StopRequest, *, stopped: bool) -> float | None:
    """How long the live views may take at the end of a run; None: as long as necessary."""
    if attempt.failure is not None:
        return 0
    return VIEWS_SECONDS if stopped else None


def _open_sides(spec: TaskSpec) -> ShardSides:
    """The coordination of shards in silver, and in the sink if there is one."""
    mode = ShardMode(spec.shard_mode) if spec.shard_mode else None
    return ShardSides(Coordination(mode), Coordination(mode, holds_all) if spec.sink is not None else None)


def _open_pipelines(following: _Following, attempt: StopRequest, sides: ShardSides) -> list[SourcePipeline]:
    """The pipelines of all sources. They are opened in parallel, except where their shards are coordinated.

    Raises:
        DmdeltaError: as `open_pipeline`.
    """

    def opened(relaying: Relaying) -> SourcePipeline:
        return open_pipeline(following.task, relaying, following.counters, attempt, sides)

    if sides.silver.mode is not None or len(following.relayings) == 1:
        return [opened(relaying) for relaying in following.relayings]
    with ThreadPoolExecutor(SOURCES_AT_ONCE, thread_name_prefix="open") as pool:
        return list(pool.map(opened, following.relayings))


def _stopped(pipelines: Sequence[SourcePipeline]) -> dict[TableName, SchemaError | QualityError]:
    """The tables that silver cannot follow, or whose rows stop them."""
    return {name: error for pipeline in pipelines for name, error in pipeline.applying.scheduler.states.stopped.items()}


@dataclass(slots=True)
class _AttemptControl:
    """Publishes the state of a attempt, and applies changed settings to it."""

    live_settings: LiveSettings
    control: ControlTable
    commands: RunCommands
    locks: Sequence[ShardLocks]
    last_reported: frozenset[TableName] = frozenset()

    def pass_on(self, pipelines: Sequence[SourcePipeline]) -> None:
        """Apply changed settings, and report which tables have stopped or resumed."""
        self.commands.observations.poll(lambda: map(stats_of, pipelines), self.commands.applied_rows)
        for pipeline in pipelines:
            pipeline.use(self.live_settings.settings)
        for side in self.locks:
            side.poll()
        stopped = _stopped(pipelines)
        if frozenset(stopped) != self.last_reported:
            self.last_reported = frozenset(stopped)
            self.control.publish(State.RUNNING, next(iter(stopped.values()), None))


def _watch(
    pipelines: Sequence[SourcePipeline], attempt: StopRequest, stop: StopRequest, control: _AttemptControl
) -> None:
    """Wait for a stop, a failure, or until nothing is left to do."""
    while not stop.wait(WATCH_SECONDS) and not attempt.requested and not control.commands.restart.is_set():
        try:
            for pipeline in pipelines:
                pipeline.check()
            control.pass_on(pipelines)
        except Exception as error:  # noqa: BLE001 - the run raises it once all is stopped
            attempt.fail(error)
        if all(pipeline.finished for pipeline in pipelines):
            return


def _end(pipelines: Sequence[SourcePipeline], stop: StopRequest, drain: float) -> None:
    """Let every pipeline reach a boundary within `drain` seconds, then write the checkpoints."""
    seconds = drain if stop.failure is None else GRACE_SECONDS
    if stop.failure is None:
        stop.request(drain)
    joined, failure = _joined(pipelines, seconds), stop.failure
    if not joined:
        log.warning("stop timed out; cancelling in-flight work", waited_seconds=seconds)
        deadline = time.monotonic() + INTERRUPT_SECONDS
        ended = [pipeline.interrupt(deadline) for pipeline in pipelines]
        stop.failure = failure  # not the failures of the cancelled stages
        if not all(ended):
            failure = failure or StageFailed("a stage does not end", hint="kill the process: no data is lost")
            stop.fail(failure)
    reason = FlushReason.PAUSE if failure is not None else FlushReason.STOP
    for pipeline in pipelines:
        try:
            pipeline.end(reason)
        except Exception as error:  # noqa: BLE001 - the first failure is raised, after all pipelines have ended
            stop.fail(error)


def _joined(pipelines: Sequence[SourcePipeline], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    ended = [pipeline.join(deadline) for pipeline in pipelines]
    return all(ended)
