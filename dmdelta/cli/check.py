"""`dmdelta check`: whether the task can run."""

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec


def check(spec: Spec, json: Json = False) -> None:
    """Check whether the task can run. Each finding has its fix; exit code 1 if one of them prevents the run."""
    task = load_spec(spec)
    from dmdelta.engine.inspect.preflight import check_task

    findings = check_task(task)
    render.rows(findings, as_json=json, empty="no findings")
    if any(finding.stops for finding in findings):
        raise typer.Exit(1)
