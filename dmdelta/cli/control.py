"""`dmdelta pause`, `resume`, `stop`, `update`: commands to a running task."""

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec


def pause(spec: Spec, json: Json = False) -> None:
    """Pause a running task: it finishes the ranges in progress, writes its checkpoint and waits."""
    _ask(spec, "pause", as_json=json)


def resume(spec: Spec, json: Json = False) -> None:
    """Resume a paused task."""
    _ask(spec, "resume", as_json=json)


def stop(spec: Spec, json: Json = False) -> None:
    """Stop a running or paused task, like SIGTERM."""
    _ask(spec, "stop", as_json=json)


def update(spec: Spec, json: Json = False) -> None:
    """Apply the spec's `checkpoint-flush-interval` to a running task. Other changes take effect at its next start."""
    task = load_spec(spec)
    from dmdelta.engine.control.client import update_task

    render.record(update_task(task), as_json=json)


def _ask(spec: Spec, request: str, *, as_json: bool) -> None:
    task = load_spec(spec)
    from dmdelta.engine.control.client import ask_task
    from dmdelta.engine.control.table import Request

    render.record(ask_task(task, Request(request)), as_json=as_json)
