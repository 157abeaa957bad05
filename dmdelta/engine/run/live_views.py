"""The live views of a run: maintained beside the pipelines of its sources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dmdelta.engine.live.tables import LiveTables
from dmdelta.engine.live.views import LiveViews, SourceTable
from dmdelta.engine.run.pipeline import SourcePipeline
from dmdelta.engine.task.source import TaskSource
from dmdelta.engine.task.task import Task, named_source
from dmdelta.lakehouse.session import clone_session


def open_views(task: Task, pipelines: Sequence[SourcePipeline]) -> LiveViews | None:
    """The live views of all sources; None if the spec does not enable them."""
    if task.spec.live is None or not task.spec.live.views:
        return None
    own = replace(task, spark=clone_session(task.spark))

    def versions() -> Mapping[SourceTable, int | None]:
        return {
            (pipeline.source_id, state.name): state.delta_version
            for pipeline in pipelines
            for state in pipeline.applying.scheduler.states
        }

    return LiveViews(LiveTables(own, [_source(own, pipeline) for pipeline in pipelines]), versions)


def _source(task: Task, pipeline: SourcePipeline) -> TaskSource:
    config, context = named_source(task.spec, pipeline.source_id), pipeline.applying.context
    return TaskSource(task, config, task.landing_source(pipeline.source_id, context.flavor), context)
