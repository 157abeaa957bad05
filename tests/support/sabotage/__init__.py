"""Switches guards off: a test that passes without the guard that it tests proves nothing.

`switch_off` does so in this process, `sabotaged_environment` in each process that is started with the environment.
"""

import os
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

VARIABLE = "DMDELTA_SABOTAGE"
"""The guards that `sitecustomize` switches off, separated by commas."""
_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_NEWER = " AND _dm_target._dm_version < _dm_source._dm_version"

Patch = Callable[[Any, str, Any], None]
"""`setattr`, or that of pytest's `monkeypatch`, which is undone."""


class Guard(str, Enum):
    VERSION = "version-guard"
    """In safe mode, an older change does not replace a newer row."""
    COMMITS = "idempotent-commits"
    """Delta skips a commit that the table already has."""
    EXIT_POINT = "exit-point"
    """Changes that may already have been applied are applied in safe mode."""
    BOUNDARY = "transaction-boundary"
    """The relay publishes whole transactions."""


def switch_off(guards: Iterable[Guard], patch: Patch) -> None:
    """Switch guards off in this process."""
    for guard in guards:
        _SWITCHES[guard](patch)


def sabotaged_environment(guards: Iterable[Guard]) -> dict[str, str]:
    """Environment variables that switch guards off in a process and its children."""
    places = [str(_HERE), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(places), VARIABLE: ",".join(guard.value for guard in guards)}


# The functions import lazily: a relay has no Spark, and the start of Python should not load it.


def _version_guard(patch: Patch) -> None:
    from dmdelta.silver.rows import commits

    guarded = commits._merge

    def unguarded(*arguments: Any) -> str:
        text = guarded(*arguments)
        assert _NEWER in text
        return text.replace(_NEWER, "")

    patch(commits, "_merge", unguarded)


def _idempotent_commits(patch: Patch) -> None:
    """The commit has no transaction id; its history has the tag."""
    from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

    from dmdelta.lakehouse import commits

    for writer in (DataFrameWriter, DataFrameWriterV2):
        patch(writer, "option", _without_transaction(writer.option))
    known = commits._set

    def set_tag_only(spark: Any, name: str, value: str) -> None:
        if name == commits.USER_METADATA:
            known(spark, name, value)

    patch(commits, "_set", set_tag_only)


def _without_transaction(option: Any) -> Any:
    def taken(writer: Any, name: str, value: Any) -> Any:
        return writer if name in ("txnAppId", "txnVersion") else option(writer, name, value)

    return taken


def _exit_point(patch: Patch) -> None:
    """A crash is treated as an orderly stop."""
    from dmdelta.checkpoint import restart_plan

    def in_order(
        table: restart_plan.TableEvidence, source: restart_plan.SourceEvidence, _policy: object
    ) -> restart_plan.RestartPlan:
        return restart_plan.RestartPlan(restart_plan._floor(table, source), "sabotage")

    patch(restart_plan, "_plan_by_exit_point", in_order)


def _transaction_boundary(patch: Patch) -> None:
    """Each event ends a transaction."""
    from dmdelta.binlog.events.boundary import BoundaryTracker

    feed = BoundaryTracker.feed

    def feed_and_end(self: BoundaryTracker, event_type: int, body: bytes, server_id: int = 0) -> bool:
        feed(self, event_type, body, server_id)
        return True

    patch(BoundaryTracker, "feed", feed_and_end)
    patch(BoundaryTracker, "inside", property(lambda _: False))


_SWITCHES: dict[Guard, Callable[[Patch], None]] = {
    Guard.VERSION: _version_guard,
    Guard.COMMITS: _idempotent_commits,
    Guard.EXIT_POINT: _exit_point,
    Guard.BOUNDARY: _transaction_boundary,
}
