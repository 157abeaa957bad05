"""The status on a terminal: golden texts in `tests/golden/status`, at most 100 columns wide.

After an intended change: `python -m tests.unit.cli.test_status_view` rewrites them.
"""

import io
import json
from datetime import timezone
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from dmdelta.cli import status as command
from dmdelta.cli.status_view import WIDTH, status_view
from dmdelta.engine.telemetry.task_status import (
    Attention,
    Mode,
    Origin,
    SnapshotProgress,
    TaskStatus,
    status_schema,
)
from tests.support.statuses import AT, source, table, task

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "status"
REASON = (
    "silver cannot follow ALTER TABLE `orders` ADD COLUMN `c` TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6): the values of "
    "existing rows are unknown (position=1/binlog.000042:97110, table=shop.orders)"
)
ATTENTION = (
    table("shop.customers"),
    table("shop.orders", phase="stopped", attention=Attention.STOPPED, reason=REASON, hint="dmdelta binlog skip SPEC"),
    table("shop.t_01", phase="waiting", attention=Attention.WAITING, reason="ALTER TABLE t_01 ADD n INT"),
    table("shop.lines", phase="late", attention=Attention.LATE, lag_seconds=95.0),
    table(
        "a_schema_with_quite_a_long_name.and_a_table_whose_name_is_as_long_as_mysql_allows_at_sixty_four",
        phase="snapshot",
        attention=Attention.SNAPSHOT,
        snapshot=SnapshotProgress(chunks=3, all_chunks=10, rows=31_000, all_rows=100_000, seconds_left=4000.0),
    ),
    table("shop.safe", mode=Mode.SAFE),
)
SINK = {"sunk_to": "1/binlog.000042:90000", "sink_lag_bytes": 8200, "sink_lacks": ("shop.lines",)}
VALIDATOR = {"validated_to": "1/binlog.000042:80000", "validator_pending": 3, "validator_errors": 1}
NEVER = ("server_at", "relayed_to", "landed_to", "applied_to", "flushed_to", "flushed_at", "mode", "safe_tables")
NEVER += ("lag_seconds", "lag_bytes", "rows_per_second")
SAFE = {"mode": Mode.SAFE, "safe_until": "1/binlog.000042:120000", "safe_tables": 4}
CASES = {
    "running": (task([source()], [table("shop.orders")]), False),
    "attention": (task([source()], ATTENTION, error=REASON, hint="dmdelta binlog skip SPEC"), False),
    "all-tables": (task([source()], ATTENTION), True),
    "sink-and-validator": (
        task(
            [
                source(**SINK, **VALIDATOR, **SAFE, validator_trouble="more than 100,000 rows differ from the source"),
                source(source_id="shop-replica", relay="connecting", lag_seconds=7300.0, lag_bytes=3 << 30),
            ],
            [table("shop.orders"), table("shop.orders", source_id="shop-replica", attention=Attention.LATE)],
        ),
        False,
    ),
    "recorded": (
        task(
            [
                source(
                    mode=None,
                    safe_tables=None,
                    lag_seconds=None,
                    lag_bytes=None,
                    rows_per_second=None,
                    relay="stopped",
                    exit_point="1/binlog.000042:98200",
                    newest_change=AT,
                )
            ],
            origin=Origin.LAKEHOUSE,
            state="failed",
            error="the relay of shop-primary failed: Access denied",
            hint="check user and password",
        ),
        False,
    ),
    "starting": (task([], state="starting"), False),
    "stopping": (
        task([source(stop_waits_for=("landing", "applying shop.orders, shop.lines", "relay", "sink", "checkpoint"))]),
        False,
    ),
    "never-ran": (
        task([source(relay=None, **dict.fromkeys(NEVER))]).model_copy(
            update={"state": None, "state_at": None, "process": None, "origin": Origin.LAKEHOUSE}
        ),
        False,
    ),
}


def rendered(name):
    status, all_tables = CASES[name]
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False)
    console.print(status_view(status, all_tables=all_tables))
    return "".join(line.rstrip() + "\n" for line in console.file.getvalue().splitlines())


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    """Times are shown in the zone of the terminal."""
    monkeypatch.setattr("dmdelta.cli.status_view._time", _utc)


def _utc(moment):
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_as_recorded(name):
    """No line is wider than 100 columns."""
    text = rendered(name)
    assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize("name", CASES)
def test_the_document_follows_its_schema(name, capsys, monkeypatch, tmp_path):
    """`--json` prints the whole model, which its own schema accepts, and nothing else."""
    status, _ = CASES[name]
    spec = tmp_path / "task.yml"
    spec.write_text("name: shop\nsources: [{source-id: s1, binlog-dir: .}]\nlakehouse: {root: lake}\n")
    monkeypatch.setattr(command, "read_status", lambda _spec: status)
    command.status(spec, tables=False, json=True, watch=False)
    document = json.loads(capsys.readouterr().out)
    schema = json.loads(status_schema())
    jsonschema.validate(document, schema)
    assert document["version"] == 1
    assert TaskStatus.model_validate(document) == status
    assert set(document) == set(schema["properties"])
    for broken in ({**document, "version": 2}, {**document, "state": 1}, {k: document[k] for k in ("task", "at")}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def test_a_pipe_gets_one_hundred_columns(capsys, monkeypatch, tmp_path):
    """The width does not depend on COLUMNS."""
    spec = tmp_path / "task.yml"
    spec.write_text("name: shop\nsources: [{source-id: s1, binlog-dir: .}]\nlakehouse: {root: lake}\n")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(command, "read_status", lambda _spec: CASES["attention"][0])
    command.status(spec, tables=False, json=False, watch=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "shop.orders" in "".join(lines)


if __name__ == "__main__":
    import dmdelta.cli.status_view as view

    view._time = _utc
    for case in CASES:
        (GOLDEN / f"{case}.txt").write_text(rendered(case), encoding="utf-8")
