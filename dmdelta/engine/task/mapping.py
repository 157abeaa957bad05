"""From the spec to the records that stages work with: relay, purge, table reads, endpoint, start and flavor."""

from pathlib import Path

from dmdelta.config import MetaConfig, PurgeConfig, SinkConfig, SourceConfig, TaskSpec
from dmdelta.lakehouse.session import tasks_at_once
from dmdelta.model.gtid import Flavor
from dmdelta.model.retry import Retry
from dmdelta.sink.target.connection import TargetServer
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.preflight.table_checks import Reading
from dmdelta.source.relay.archive import archive_flavor
from dmdelta.source.relay.purge import PurgePolicy
from dmdelta.source.relay.relay_task import RelayTask, Start, StartAfter, StartAt, StartEdge
from dmdelta.source.server import server_identity

FIRST_TRY = Retry(attempts=3)


def relay_task(spec: TaskSpec, source: SourceConfig, *, until_caught_up: bool) -> RelayTask:
    """The task of a source's relay."""
    return RelayTask(
        source_id=source.source_id,
        relay_dir=spec.relay_dir(source),
        endpoint=endpoint_of(source),
        binlog_dir=source.binlog_dir,
        start=start_of(source.meta),
        until_caught_up=until_caught_up,
    )


def purging_of(config: PurgeConfig) -> PurgePolicy:
    """How long landed segments are kept."""
    return PurgePolicy(config.expires, config.remain_space << 30)


def reading_of(spec: TaskSpec, source: SourceConfig) -> Reading:
    """How the tables of a source are read for a full load."""
    if not spec.loads(source):
        return Reading()
    together = spec.snapshot.consistency == "snapshot"
    return Reading(loads=True, at_once=tasks_at_once(), together=together, alone=len(spec.sources) == 1)


def endpoint_of(source: SourceConfig) -> Endpoint | None:
    """The server of a source; None for an archive."""
    if source.host is None or source.user is None:
        return None
    return Endpoint(
        host=source.host,
        port=source.port,
        user=source.user,
        password=source.password.get_secret_value(),
        tls=source.security.tls if source.security else None,
        flavor=source.flavor,
        server_id=source.server_id,
    )


def start_of(meta: MetaConfig | None) -> Start:
    """Where a first start begins: at the spec's `meta`, else at the oldest file."""
    if meta is None:
        return StartEdge.OLDEST
    if meta.binlog_name is not None:
        return StartAt(meta.binlog_name, meta.binlog_pos)
    return StartAfter(meta.binlog_gtid or "")


def flavor_of_source(source: SourceConfig) -> Flavor:
    """The flavor of a source's log; its server is queried if the spec does not set it.

    Raises:
        SourceError, SourceUnavailable: the server does not answer.
    """
    if source.flavor is not None:
        return source.flavor
    endpoint = endpoint_of(source)
    if endpoint is None:
        return archive_flavor(Path(source.binlog_dir or ""))
    with open_connection(endpoint, FIRST_TRY) as connection:
        return server_identity(connection).flavor


def target_server(config: SinkConfig) -> TargetServer:
    """The server that a sink writes to."""
    return TargetServer(
        config.host,
        config.port,
        config.user,
        config.password.get_secret_value(),
        tidb=config.kind == "tidb",
        foreign_key_checks=config.foreign_key_checks,
        tls=config.security.tls if config.security else None,
        session=tuple(config.session.items()),
    )


def sinks_passing_rows(spec: TaskSpec) -> bool:
    """Whether rows that silver quarantines are kept out of the sink's target."""
    return spec.sink is not None and spec.quality is not None and spec.quality.sink == "passing"
