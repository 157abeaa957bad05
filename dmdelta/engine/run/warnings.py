"""Warns, when a run starts, of what may lose or duplicate rows although nothing fails."""

from collections.abc import Sequence

from dmdelta.config import TaskSpec
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.task.mapping import FIRST_TRY
from dmdelta.engine.task.risks import SelectedTables, plan_risks, read_selected, shard_risks
from dmdelta.errors import DmdeltaError
from dmdelta.logging import get_logger
from dmdelta.source.connection import open_connection

log = get_logger(__name__)


def warn_of_risks(spec: TaskSpec, relayings: Sequence[Relaying]) -> None:
    """Log the risks of a spec and of the tables of its sources; an archive has no catalog, so its tables are unknown.

    The sources have just answered. One that no longer does is left to its relay, which retries.
    """
    selected = SelectedTables.of_all([_selected(spec, relaying) for relaying in relayings])
    for risk in [*shard_risks(spec, selected), *plan_risks(spec, selected)]:
        found = risk.finding
        if not spec.is_ignored(found.name):
            log.warning("preflight", concerns=risk.concerns, check=found.name, finding=found.message, fix=found.fix)


def _selected(spec: TaskSpec, relaying: Relaying) -> SelectedTables:
    """A source's tables, if they matter: to a sink, or because routes may merge them."""
    endpoint = relaying.task.endpoint
    if endpoint is None or (spec.sink is None and not spec.routes):
        return SelectedTables({})
    try:
        with open_connection(endpoint, FIRST_TRY) as connection:
            return read_selected(connection, relaying.rules)
    except DmdeltaError as error:
        log.warning("tables not checked for risks", source=relaying.source_id, why=error.message)
        return SelectedTables({})
