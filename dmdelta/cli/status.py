"""`dmdelta status`: how far the task is."""

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec


def status(spec: Spec, json: Json = False) -> None:
    """Positions from the server to silver, by source and table."""
    task = load_spec(spec)
    from dmdelta.engine.status import task_status

    render.record(task_status(task), as_json=json)
