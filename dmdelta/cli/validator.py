"""`dmdelta validate status`, `show-error`, `ignore-error`, `resolve-error`, `clear-error`: the validator of a task."""

from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ReadValidator
from dmdelta.engine.inspect.operate import operate

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.validation.admin import ErrorChoice

_NO_ERRORS = "no errors"
Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ERROR", help="Identifiers of errors, as shown by `show-error`.")
]
All = Annotated[bool, typer.Option("--all", help="All errors, or all errors of the given table.")]
OfTable = Annotated[str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help="Only errors of this table.")]
OfState = Annotated[
    str | None,
    typer.Option("--state", metavar="STATE", help="Only errors in this state: `new`, `ignored` or `resolved`."),
]


def status(spec: Spec, json: Json = False) -> None:
    """Show the validator's progress, each table's status, pending rows, and errors by state."""
    found = operate(load_spec(spec), ReadValidator())
    if json:
        render.print_json(found)
        return
    for each in found:
        render.record(each, as_json=False)
    if not found:
        render.rows([], as_json=False, empty="the validator has not run: set validator.mode in the spec")


def show_error(spec: Spec, table: OfTable = None, state: OfState = None, json: Json = False) -> None:
    """Show the rows that have differed for longer than `row-error-delay`, with both sides' values."""
    task = load_spec(spec)
    from dmdelta.engine.validation.admin import ErrorChoice, show_errors
    from dmdelta.quality.pending import ErrorState

    known = [each.value for each in ErrorState]
    if state is not None and state not in known:
        raise typer.BadParameter(f"{state!r} is not one of {', '.join(known)}", param_hint="--state")
    choice = ErrorChoice(None, table, ErrorState(state) if state else None)
    render.rows(show_errors(task, choice), as_json=json, empty=_NO_ERRORS)


def ignore_error(spec: Spec, ids: Ids = None, all_: All = False, table: OfTable = None, json: Json = False) -> None:
    """Ignore errors: they stay ignored if the rows differ again."""
    task, choice = load_spec(spec), _choice(ids, all_, table)
    from dmdelta.engine.validation.admin import decide_errors
    from dmdelta.quality.pending import ErrorState

    render.rows(decide_errors(task, choice, ErrorState.IGNORED), as_json=json, empty=_NO_ERRORS)


def resolve_error(spec: Spec, ids: Ids = None, all_: All = False, table: OfTable = None, json: Json = False) -> None:
    """Mark errors as resolved: they are new errors if the rows differ again."""
    task, choice = load_spec(spec), _choice(ids, all_, table)
    from dmdelta.engine.validation.admin import decide_errors
    from dmdelta.quality.pending import ErrorState

    render.rows(decide_errors(task, choice, ErrorState.RESOLVED), as_json=json, empty=_NO_ERRORS)


def clear_error(spec: Spec, ids: Ids = None, all_: All = False, table: OfTable = None, json: Json = False) -> None:
    """Remove errors together with the values of their rows."""
    task, choice = load_spec(spec), _choice(ids, all_, table)
    from dmdelta.engine.validation.admin import clear_errors

    render.rows(clear_errors(task, choice), as_json=json, empty=_NO_ERRORS)


def _choice(ids: list[str] | None, all_: bool, table: str | None) -> "ErrorChoice":
    from dmdelta.engine.validation.admin import ErrorChoice

    if bool(ids) == all_:
        raise typer.BadParameter("name errors, or say --all")
    return ErrorChoice(None if all_ else ids, table)
