"""What the stop of a run waits for."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dmdelta.engine.control.background import in_background
from dmdelta.engine.control.supervise import SupervisedLoop
from dmdelta.engine.run.pipeline import SourcePipeline
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.source.preflight.finding import listed

log = get_logger(__name__)
REPORT_SECONDS = 1.0
FIRST_SECONDS = 0.05
"""How soon a stop that is requested in the block is reported."""
MOST_TABLES = 5
"""The number of tables that are named."""
_STAGES = {"land": "landing", "snapshot": "snapshot", "maintenance": "maintenance"}


def awaited(pipeline: SourcePipeline) -> tuple[str, ...]:
    """What the requested stop of a source waits for: stages, tables with running turns, the last checkpoint.

    Empty if no stop is requested, and after it.
    """
    if not pipeline.stop.requested or pipeline.has_ended:
        return ()
    running = pipeline.running_stages
    stages = [text for stage, text in _STAGES.items() if stage in running]
    if "apply" in running:
        stages.append(applying(pipeline.applying.scheduler.in_flight))
    stages += ["relay"] if pipeline.relaying.is_running else []
    loops = {"sink": pipeline.sinking, "validator": pipeline.validator}
    stages += [name for name, loop in loops.items() if _is_running(loop)]
    return (*stages, "checkpoint")


def applying(tables: Sequence[TableName]) -> str:
    """The applying stage, with the tables whose turns are running."""
    if not tables:
        return "applying"
    return f"applying {listed(['.'.join(name) for name in tables], MOST_TABLES)}"


def _is_running(loop: SupervisedLoop | None) -> bool:
    return loop is not None and not loop.finished


@contextmanager
def reporting_stop(pipelines: Sequence[SourcePipeline]) -> Iterator[None]:
    """Log what a stop waits for, now and after each change, until the block ends."""

    def report(over: threading.Event) -> None:
        last: dict[str, tuple[str, ...]] = {}
        while True:
            waits_for = {pipeline.source_id: found for pipeline in pipelines if (found := awaited(pipeline))}
            if waits_for and waits_for != last:
                log.info("stopping", waits_for=waits_for)
            last = waits_for
            if over.wait(REPORT_SECONDS if last else FIRST_SECONDS):
                return

    with in_background(report, "stopping"):
        yield
