"""A task put together from its spec: names, rules, endpoints, and the session that all stages share."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import LandingSource, open_bronze
from dmdelta.checkpoint import SafeModePolicy
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.live import InForce, LiveSettings
from dmdelta.engine.requests import SilverSide
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.creation import make_schema
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.quality.suite import Suites
from dmdelta.rules import SourceRules
from dmdelta.rules.operators import Operator
from dmdelta.sharding import Coordination


@dataclass(frozen=True, slots=True)
class Task:
    """What every stage of a run knows of it.

    Attributes:
        run: tells this process's commits from another's.
        in_force: what of the spec can change while it runs, as it is now.
        suites: what is expected of its tables; a run reads them, and who judges.
    """

    spec: TaskSpec
    spark: SparkSession
    lakehouse: Lakehouse
    run: str
    in_force: InForce
    suites: Suites = field(default_factory=Suites)

    @property
    def policy(self) -> SafeModePolicy:
        return SafeModePolicy(self.spec.syncer.safe_mode, self.spec.syncer.safe_window)

    def rules(self, source_id: str) -> SourceRules:
        """What the spec says about a source's tables."""
        return SourceRules.from_spec(self.spec, named_source(self.spec, source_id))

    def landing_source(self, source_id: str, flavor: Flavor) -> LandingSource:
        return LandingSource(self.spec.name, self.run, self.lakehouse.bronze, self.rules(source_id), flavor)

    def silver_side(
        self, source_id: str, flavor: Flavor, operators: Mapping[Position, Operator], shards: Coordination
    ) -> SilverSide:
        rules = replace(self.rules(source_id), operators=operators)
        return SilverSide(self.lakehouse, self.spec.name, source_id, self.run, flavor, rules, shards)


def named_source(spec: TaskSpec, source_id: str | None) -> SourceConfig:
    """One of a task's sources; `source_id` may be None for a task of one source.

    Raises:
        ConfigError: the task has no such source, or several and none is named.
    """
    found = [source for source in spec.sources if source_id in (None, source.source_id)]
    if len(found) != 1:
        names = ", ".join(source.source_id for source in spec.sources)
        raise ConfigError(f"the task has the sources {names}", hint="name one of them with --source")
    return found[0]


def place_of(spec: TaskSpec) -> Lakehouse:
    """Where a task's tables are."""
    config = spec.lakehouse
    return Lakehouse(config.root, config.catalog, bronze_name=config.bronze, metadata_name=config.metadata)


def open_task(spec: TaskSpec, *, writing: bool = True) -> Task:
    """Start Spark and look at the lakehouse.

    Args:
        writing: make the bronze table if it is not there.

    Raises:
        ForeignTable: the place of bronze is taken.
        LakehouseError: the place cannot be reached.
    """
    spark = open_session(f"dmdelta {spec.name}")
    register(spark)
    task = Task(spec, spark, place_of(spec), uuid.uuid4().hex, InForce(LiveSettings.of(spec)))
    if writing:
        make_schema(spark, task.lakehouse, task.lakehouse.bronze_name)
        open_bronze(spark, task.lakehouse.bronze, spec.name)
    return task


def with_safe_mode(spec: TaskSpec) -> TaskSpec:
    """The spec as if it said `safe-mode: true`."""
    return spec.model_copy(update={"syncer": spec.syncer.model_copy(update={"safe_mode": True})})
