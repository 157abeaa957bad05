"""The Databricks bundle against a JSON schema like that of the CLI: databricks-bundles' types of the resources, and the
settings around them as `bundle_schema` writes them out. The CLI's own schema: docs/databricks.md, tested by hand.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support.bundle_schema import bundle_schema

ROOT = Path(__file__).parents[3]
FILES = {
    str(file.relative_to(ROOT)): yaml.safe_load(file.read_text())
    for file in (ROOT / "databricks.yml", *sorted((ROOT / "resources").glob("*.yml")))
}
VALIDATOR = jsonschema.Draft202012Validator(bundle_schema())
NAMES = {"variables", "artifacts", "targets", "jobs", "schemas", "volumes", "secret_scopes"}
"""Mappings whose keys are names of the bundle's own."""
RUN = ("resources", "jobs", "run")
CATCH_UP = ("resources", "jobs", "catch_up")
PROD = ("targets", "prod")

WRONG = [
    ("databricks.yml", ("bundle", "name"), 7, "7 is not of type 'string'"),
    ("databricks.yml", ("include",), "resources/*.yml", "is not of type 'array'"),
    ("databricks.yml", ("variables", "schema", "description"), ["a"], "is not of type 'string'"),
    ("databricks.yml", ("artifacts", "wheel", "type"), "wheel", "'wheel' is not one of"),
    ("databricks.yml", ("artifacts", "wheel", "dynamic_version"), "yes", "'yes' is not of type 'boolean'"),
    ("databricks.yml", (*PROD, "mode"), "live", "'live' is not one of"),
    ("databricks.yml", (*PROD, "run_as"), "0f1e", "is not of type 'object'"),
    ("databricks.yml", (*PROD, "permissions", 0, "level"), "CAN_DO", "'CAN_DO' is not one of"),
    ("databricks.yml", (*PROD, "resources", "schemas", "metadata", "lifecycle", "prevent_destroy"), 1, "1 is not of"),
    ("databricks.yml", (*PROD, *RUN, "job_clusters", 0, "new_cluster", "num_workers"), "one", "'one' is not of type"),
    ("resources/run.job.yml", (*RUN, "timeout_seconds"), "0", "'0' is not of type 'integer'"),
    ("resources/run.job.yml", (*RUN, "continuous", "pause_status"), "STOPPED", "'STOPPED' is not one of"),
    ("resources/run.job.yml", (*RUN, "email_notifications", "on_failure"), "a@b.c", "'a@b.c' is not of type 'array'"),
    ("resources/run.job.yml", (*RUN, "tasks", 0, "python_wheel_task", "parameters"), "run", "'run' is not of type"),
    ("resources/catch_up.job.yml", (*CATCH_UP, "queue", "enabled"), "no", "'no' is not of type 'boolean'"),
    ("resources/catch_up.job.yml", (*CATCH_UP, "tasks", 1, "condition_task", "op"), "EQUALS", "'EQUALS' is not one of"),
    ("resources/catch_up.job.yml", (*CATCH_UP, "tasks", 1, "depends_on"), "dmdelta", "is not of type 'array'"),
    (
        "resources/catch_up.job.yml",
        (*CATCH_UP, "tasks", 2, "depends_on", 0, "outcome"),
        True,
        "is not of type 'string'",
    ),
    ("resources/catch_up.job.yml", (*CATCH_UP, "tasks", 4, "run_job_task", "job_id"), "maintain", "is not of type"),
    ("databricks.yml", (*PROD, "resources", "jobs", "maintain", "permissions", 0, "level"), "CAN_RUN", "is not one of"),
    (
        "resources/metadata.schema.yml",
        ("resources", "schemas", "metadata", "grants", 0, "privileges", 0),
        "USE",
        "'USE' is not one of",
    ),
]
REQUIRED = [
    ("databricks.yml", ("bundle", "name")),
    ("databricks.yml", (*PROD, "permissions", 0, "level")),
    ("databricks.yml", (*PROD, *RUN, "job_clusters", 0, "job_cluster_key")),
    ("databricks.yml", (*PROD, *RUN, "tasks", 0, "task_key")),
    ("databricks.yml", ("targets", "dev_serverless", *RUN, "environments", 0, "environment_key")),
    ("databricks.yml", (*PROD, "resources", "secret_scopes", "passwords", "permissions", 0, "level")),
    ("resources/run.job.yml", (*RUN, "tasks", 0, "task_key")),
    ("resources/run.job.yml", (*RUN, "tasks", 0, "python_wheel_task", "entry_point")),
    ("resources/run.job.yml", (*RUN, "tasks", 0, "python_wheel_task", "package_name")),
    ("resources/catch_up.job.yml", (*CATCH_UP, "schedule", "quartz_cron_expression")),
    ("resources/catch_up.job.yml", (*CATCH_UP, "queue", "enabled")),
    ("resources/catch_up.job.yml", (*CATCH_UP, "tasks", 1, "depends_on", 0, "task_key")),
    *(
        ("resources/catch_up.job.yml", (*CATCH_UP, "tasks", 1, "condition_task", key))
        for key in ("left", "op", "right")
    ),
    ("resources/catch_up.job.yml", (*CATCH_UP, "tasks", 4, "run_job_task", "job_id")),
    ("resources/replay_quality.job.yml", ("resources", "jobs", "replay_quality", "parameters", 0, "default")),
    ("resources/metadata.schema.yml", ("resources", "schemas", "metadata", "catalog_name")),
    ("resources/relay.volume.yml", ("resources", "volumes", "relay", "schema_name")),
    ("resources/passwords.secret_scope.yml", ("resources", "secret_scopes", "passwords", "name")),
]


def keys(node: Any, place: tuple[Any, ...] = (), seen: set[int] | None = None) -> Iterator[tuple[Any, ...]]:
    """The path of each key that the schema defines, anchored content only once."""
    seen = set() if seen is None else seen
    if id(node) in seen or not isinstance(node, dict | list):
        return
    seen.add(id(node))
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(key, str) and (not place or place[-1] not in NAMES):
            yield (*place, key)
        yield from keys(value, (*place, key), seen)


def changed(file: str, place: tuple[Any, ...], *, rename: str = "", value: Any = None) -> Any:
    """A file's content with a key renamed or set, or else without it."""
    content = json.loads(json.dumps(FILES[file]))  # anchored content becomes separate
    node = content
    for key in place[:-1]:
        node = node[key]
    if value is None:
        old = node.pop(place[-1])
        node.update({rename: old} if rename else {})
    else:
        node[place[-1]] = value
    return content


def complaints(content: Any) -> list[str]:
    """Why the schema refuses a file: the path and the message of each error."""
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in VALIDATOR.iter_errors(content)]


@pytest.mark.parametrize("file", FILES)
def test_a_file_fits_the_schema(file: str) -> None:
    assert complaints(FILES[file]) == []


@pytest.mark.parametrize("file", FILES)
def test_a_misspelled_key_is_refused(file: str) -> None:
    """Each one that the bundle uses, at its place."""
    places = list(keys(FILES[file]))
    assert len(places) >= 3
    for place in places:
        found = complaints(changed(file, place, rename=f"{place[-1]}_"))
        assert any(
            one.startswith(".".join(map(str, place[:-1]))) and f"'{place[-1]}_' was unexpected" in one for one in found
        ), place


@pytest.mark.parametrize(("file", "place", "value", "complaint"), WRONG)
def test_a_wrong_value_is_refused(file: str, place: tuple[Any, ...], value: Any, complaint: str) -> None:
    found = complaints(changed(file, place, value=value))
    assert len(found) == 1
    assert found[0].startswith(".".join(map(str, place)))
    assert complaint in found[0]


@pytest.mark.parametrize(("file", "place"), REQUIRED)
def test_a_missing_key_is_refused(file: str, place: tuple[Any, ...]) -> None:
    (found,) = complaints(changed(file, place))
    assert found == f"{'.'.join(map(str, place[:-1]))}: {place[-1]!r} is a required property"


def test_a_reference_stands_for_any_value() -> None:
    """A number, a choice and a list; a text with something around the reference is refused."""
    for place in (("timeout_seconds",), ("continuous", "pause_status"), ("email_notifications", "on_failure")):
        assert complaints(changed("resources/run.job.yml", (*RUN, *place), value="${var.x}")) == []
        assert complaints(changed("resources/run.job.yml", (*RUN, *place), value="a ${var.x}")) != []
