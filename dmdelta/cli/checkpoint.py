"""`dmdelta checkpoint`: the flushed checkpoint."""

from typing import Any

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ShowCheckpoint
from dmdelta.engine.inspect.operate import operate
from dmdelta.model.position import Position

app = typer.Typer(no_args_is_help=True, help="The flushed checkpoint.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """The flushed checkpoint."""


@app.command("show")
def show(spec: Spec, json: Json = False) -> None:
    """Show the global, table and exit points of the last flush."""
    rows = operate(load_spec(spec), ShowCheckpoint())
    render.rows(rows if json else [_line(row) for row in rows], as_json=json, empty="no checkpoint yet")


@app.command("reset")
def reset(spec: Spec, json: Json = False) -> None:
    """Reset the task's position: the next run starts where the first start did. Bronze and silver stay."""
    task = load_spec(spec)
    from dmdelta.engine.run.restart import reset_task

    render.rows(reset_task(task), as_json=json, empty="no sources")


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """A row for the terminal: positions as text, without structures and GTID sets."""
    return {
        "source": row["id"],
        "table": "(global)" if row["is_global"] else f"{row['cp_schema']}.{row['cp_table']}",
        "position": _position(row, ""),
        "exit_point": _position(row, "exit_point_"),
        "delta_version": row["delta_version"],
        "reason": row["reason"],
        "flush": row["flush_id"],
        "at": row["updated_at"],
    }


def _position(row: dict[str, Any], prefix: str) -> str | None:
    if row[f"{prefix}binlog_name"] is None:
        return None
    return str(Position(row[f"{prefix}epoch"], row[f"{prefix}binlog_name"], row[f"{prefix}binlog_pos"]))
