"""`dmdelta pause`, `resume`, `stop`, `update`: commands to a running task."""

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ChangeState, Update
from dmdelta.engine.control.state import Request
from dmdelta.engine.inspect.operate import operate
from dmdelta.engine.task.live_settings import RunSettings


def pause(spec: Spec, json: Json = False) -> None:
    """Pause a running task: it brings all tables and the sink to one position, for at most 10 s.

    It writes its checkpoint and lists the tables that are elsewhere.
    """
    _ask(spec, Request.PAUSE, as_json=json)


def resume(spec: Spec, json: Json = False) -> None:
    """Resume a paused task."""
    _ask(spec, Request.RESUME, as_json=json)


def stop(spec: Spec, json: Json = False) -> None:
    """Stop a running or paused task, like SIGTERM; it ends like a pause."""
    _ask(spec, Request.STOP, as_json=json)


def update(spec: Spec, json: Json = False) -> None:
    """Apply the spec's `checkpoint-flush-interval` to a running task. Other changes take effect at its next start."""
    task = load_spec(spec)
    render.record(operate(task, Update(settings=RunSettings.of(task).to_json())), as_json=json)


def _ask(spec: Spec, request: Request, *, as_json: bool) -> None:
    render.record(operate(load_spec(spec), ChangeState(command=request)), as_json=as_json)
