"""A task, assembled from its spec: names, rules, endpoints, and the session that all stages share."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import open_bronze
from dmdelta.changelog.context import SourceContext
from dmdelta.checkpoint import SafeModePolicy
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.task.live_settings import LiveSettings, RunSettings
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.access.deferred_session import deferred_session
from dmdelta.lakehouse.creation import make_schema
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import SessionSettings, open_session
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.quality.suite import Suites, load_suites
from dmdelta.rules import SourceRules
from dmdelta.rules.operators import Operator
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.silver_context import SilverContext

Stage = Callable[[str], object]
"""Called with what a command does now, in the words of its user."""


def ignored(_doing: str) -> None:
    """The stage of a caller that shows none."""


@dataclass(frozen=True, slots=True)
class Task:
    """The data that every stage of a run shares.

    Attributes:
        run: distinguishes this process's commits from another's.
        live_settings: the settings that can change while the task runs.
        suites: expectations on its tables; loaded by a run and by quality commands.
    """

    spec: TaskSpec
    spark: SparkSession
    lakehouse: Lakehouse
    run: str
    live_settings: LiveSettings
    suites: Suites = field(default_factory=Suites)

    @property
    def policy(self) -> SafeModePolicy:
        return SafeModePolicy(self.spec.syncer.safe_mode, self.spec.syncer.safe_window)

    def rules(self, source_id: str) -> SourceRules:
        """The rules of the spec for a source's tables."""
        return SourceRules.from_spec(self.spec, named_source(self.spec, source_id))

    def landing_source(self, source_id: str, flavor: Flavor) -> SourceContext:
        return SourceContext(self.lakehouse, self.spec.name, source_id, self.run, flavor, self.rules(source_id))

    def silver_context(
        self, source_id: str, flavor: Flavor, operators: Mapping[Position, Operator], shards: Coordination
    ) -> SilverContext:
        rules = replace(self.rules(source_id), operators=operators)
        return SilverContext(
            lakehouse=self.lakehouse,
            task=self.spec.name,
            source_id=source_id,
            run=self.run,
            flavor=flavor,
            rules=rules,
            shards=shards,
        )


def named_source(spec: TaskSpec, source_id: str | None) -> SourceConfig:
    """One of a task's sources; `source_id` may be None for a task of one source.

    Raises:
        ConfigError: the task has no such source, or several and none is named.
    """
    matching = [source for source in spec.sources if source_id in (None, source.source_id)]
    if len(matching) != 1:
        names = ", ".join(source.source_id for source in spec.sources)
        raise ConfigError(f"the task has the sources {names}", hint="select one of them with --source")
    return matching[0]


def place_of(spec: TaskSpec) -> Lakehouse:
    """The locations of a task's tables."""
    config = spec.lakehouse
    return Lakehouse(config.root, config.catalog, bronze_name=config.bronze, metadata_name=config.metadata)


def open_task(spec: TaskSpec, *, writing: bool = True, beside_run: bool = False) -> Task:
    """Start Spark and open the lakehouse.

    Args:
        writing: to land: create the bronze table if it does not exist, and register the data source that decodes
            segments, for which Spark starts a Python process.
        beside_run: leave a running task its share of the cores and of the memory.

    Raises:
        ForeignTable: the bronze table belongs to another task.
        LakehouseError: the lakehouse is unavailable.
    """
    spark = open_session(f"dmdelta {spec.name}", SessionSettings(beside_run=beside_run))
    task = Task(spec, spark, place_of(spec), uuid.uuid4().hex, LiveSettings(RunSettings.of(spec)))
    if writing:
        register(spark)
        make_schema(spark, task.lakehouse, task.lakehouse.bronze_name)
        open_bronze(spark, task.lakehouse.bronze, spec.name)
    return task


def open_metadata(spec: TaskSpec) -> Task:
    """Open a task for commands on dm_meta, histories and relay folders. Spark starts only where they need it: if the
    lakehouse is not under a local root.
    """

    def start() -> SparkSession:
        return open_task(spec, writing=False, beside_run=True).spark

    return Task(spec, deferred_session(start), place_of(spec), uuid.uuid4().hex, LiveSettings(RunSettings.of(spec)))


def with_safe_mode(spec: TaskSpec) -> TaskSpec:
    """The spec with `safe-mode: true`."""
    return spec.model_copy(update={"syncer": spec.syncer.model_copy(update={"safe_mode": True})})


def open_suites(spec: TaskSpec) -> Suites:
    """The suites that the spec names; none without `quality`.

    Raises:
        ConfigError: a suite is invalid, or Great Expectations is not installed.
    """
    if spec.quality is None:
        return Suites()
    # Great Expectations takes a second to import, and is only installed where it is needed.
    from dmdelta.quality.expectations import assert_known  # noqa: PLC0415

    suites = load_suites(Path(spec.quality.schemas))
    for suite in suites.by_table.values():
        for expectation in suite.expectations:
            assert_known(expectation)
    return suites
