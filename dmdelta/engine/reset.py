"""`checkpoint reset`: every source of a task begins anew with the next run."""

from contextlib import ExitStack
from dataclasses import dataclass

from dmdelta.config import TaskSpec
from dmdelta.engine.anew import begin_source
from dmdelta.engine.relaying import open_relaying
from dmdelta.engine.task import open_task
from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class ResetSource:
    """A source and where its next run begins."""

    source: str
    begins: Position


def reset_task(spec: TaskSpec) -> list[ResetSource]:
    """Forget where a task stands.

    Raises:
        Fenced: it is running.
        DmdeltaError: a source or the lakehouse cannot be reached, or the source lacks what the spec begins with.
    """
    with ExitStack() as opened:
        relayings = [opened.enter_context(open_relaying(spec, source, until_caught_up=True)) for source in spec.sources]
        task = open_task(spec)
        return [
            ResetSource(relaying.source_id, begin_source(task, relaying, relaying.task.start)) for relaying in relayings
        ]
