"""`dmdelta pause`, `resume`, `stop`, `update`: asking a running task from another process."""

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec


def pause(spec: Spec, json: Json = False) -> None:
    """Have a running task end what is in flight, write its checkpoint and wait."""
    _ask(spec, "pause", as_json=json)


def resume(spec: Spec, json: Json = False) -> None:
    """Have a paused task go on."""
    _ask(spec, "resume", as_json=json)


def stop(spec: Spec, json: Json = False) -> None:
    """Have a running or paused task end, as SIGTERM does."""
    _ask(spec, "stop", as_json=json)


def update(spec: Spec, json: Json = False) -> None:
    """Have a running task take over the spec's `checkpoint-flush-interval`. All else counts from its next start."""
    task = load_spec(spec)
    from dmdelta.engine.asking import update_task

    render.record(update_task(task), as_json=json)


def _ask(spec: Spec, request: str, *, as_json: bool) -> None:
    task = load_spec(spec)
    from dmdelta.engine.asking import ask_task
    from dmdelta.engine.control_table import Request

    render.record(ask_task(task, Request(request)), as_json=as_json)
