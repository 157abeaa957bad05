"""Warns at the start of a run of settings and tables that may lose or duplicate rows, and of what stops the sink."""

from collections.abc import Sequence

from dmdelta.config import TaskSpec
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.task.mapping import FIRST_TRY
from dmdelta.engine.task.risks import Risk, SelectedTables, plan_risks, read_selected, shard_risks
from dmdelta.engine.task.target_checks import TargetFindings, check_target
from dmdelta.errors import DmdeltaError
from dmdelta.logging import get_logger
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Level

log = get_logger(__name__)


def warn_of_risks(spec: TaskSpec, relayings: Sequence[Relaying]) -> None:
    """Log the risks of a spec and of the tables of its sources, and what the sink's target lacks.

    An archive has no catalog, so its tables are unknown. The sources have just answered. One that no longer does is
    left to its relay, which retries; the target is left to the sink, whose failure stops nothing else.
    """
    selected = SelectedTables.of_all([_selected(spec, relaying) for relaying in relayings])
    target = check_target(spec.sink, selected) if spec.sink is not None else TargetFindings(())
    risks = [*shard_risks(spec, selected), *plan_risks(spec, selected, target.keys)]
    raised = [Risk("sink", found) for found in target.findings if found.level is not Level.PASS]
    for risk in [*risks, *raised]:
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
