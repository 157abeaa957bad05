"""`checkpoint reset`: every source of a task restarts with the next run."""

from contextlib import ExitStack
from dataclasses import dataclass

from dmdelta.config import TaskSpec
from dmdelta.engine.relay.supervisor import open_relaying
from dmdelta.engine.run.restart import begin_source
from dmdelta.engine.task.task import open_task
from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class ResetSource:
    """A source and where its next run starts."""

    source: str
    begins: Position


def reset_task(spec: TaskSpec) -> list[ResetSource]:
    """Reset a task.

    Raises:
        Fenced: it is running.
        DmdeltaError: a source or the lakehouse is unavailable, or the source lacks the spec's start position.
    """
    with ExitStack() as opened:
        relayings = [opened.enter_context(open_relaying(spec, source, until_caught_up=True)) for source in spec.sources]
        task = open_task(spec)
        return [
            ResetSource(relaying.source_id, begin_source(task, relaying, relaying.task.start)) for relaying in relayings
        ]
