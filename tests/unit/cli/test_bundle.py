"""The Databricks bundle: its jobs use existing commands, options and files, and each target says where they run, and as whom."""

import re
from collections.abc import Callable, Mapping
from operator import ge, le, lt
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from dmdelta.cli.main import app
from dmdelta.config import TaskSpec, load_spec
from dmdelta.engine.quality.command import QualityRequest, split_by_source

ROOT = Path(__file__).parents[3]
FILES = [ROOT / "databricks.yml", *sorted((ROOT / "resources").glob("*.yml"))]
BUNDLE = yaml.safe_load(FILES[0].read_text())
RESOURCES = [yaml.safe_load(file.read_text())["resources"] for file in FILES[1:]]
JOBS: dict[str, Any] = {name: job for part in RESOURCES for name, job in part.get("jobs", {}).items()}
TARGETS: dict[str, Any] = BUNDLE["targets"]
BOTH = [(target, name) for target in TARGETS for name in JOBS]
VARIABLE = re.compile(r"\$\{var\.(\w+)\}")
GIVEN = {"run_as": "0f1e", "notification_address": "data@example.com"}
"""Variables that are set when prod is deployed."""


def the(kind: str) -> dict[str, Any]:
    """The bundle's one schema, Volume or secret scope."""
    (found,) = [one for part in RESOURCES for one in part.get(kind, {}).values()]
    return found


def values(target: str) -> dict[str, str]:
    """The variables' values in a target."""
    defaults = {name: one["default"] for name, one in BUNDLE["variables"].items() if "default" in one}
    return defaults | GIVEN | TARGETS[target]["variables"]


def resolved(text: str, target: str) -> str:
    """A text as the bundle's CLI renders it."""
    text = VARIABLE.sub(lambda found: values(target)[found[1]], text)
    return text.replace("${workspace.file_path}", str(ROOT)).replace("${resources.schemas.metadata.name}", "dm_meta")


def wheel_task(name: str) -> dict[str, Any]:
    """A job's only task that runs dmdelta, and needs compute."""
    (task,) = [one for one in JOBS[name]["tasks"] if "condition_task" not in one and "run_job_task" not in one]
    assert task["task_key"] == "dmdelta"
    return task


def asked(name: str, target: str = "prod") -> dict[str, Any]:
    """The command line of a job."""
    task = wheel_task(name)
    given = {one["name"]: str(one["default"]) for one in JOBS[name].get("parameters", [])}
    texts = [resolved(text, target) for text in task["python_wheel_task"]["parameters"]]
    return parsed([re.sub(r"\{\{job\.parameters\.(\w+)\}\}", lambda found: given[found[1]], text) for text in texts])


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Parse a command line without running it."""
    command: Any = typer.main.get_command(app)
    context, path = None, []
    while hasattr(command, "commands"):
        context = command.make_context(command.name, arguments, parent=context)
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        path.append(command.name)
    return {**command.make_context(command.name, arguments, parent=context).params, "command": path[0]}


@pytest.mark.parametrize(("target", "name"), BOTH)
def test_a_job_runs_an_existing_command(target: str, name: str) -> None:
    """The wheel's entry point, a valid command line, a shipped spec."""
    wheel = wheel_task(name)["python_wheel_task"]
    project = (ROOT / "pyproject.toml").read_text()
    assert f'name = "{wheel["package_name"]}"' in project
    assert f'{wheel["entry_point"]} = "dmdelta.cli.main:main"' in project
    spec = Path(asked(name, target)["spec"])
    assert spec.relative_to(ROOT).parts[0] in BUNDLE["sync"]["paths"]
    assert spec.is_file()


def test_the_jobs_do_what_their_names_say() -> None:
    """One runs continuously, one ends; each of the others is the command of its name."""
    assert (asked("run")["until_caught_up"], asked("catch_up")["until_caught_up"]) == (False, True)
    assert (asked("quality")["last"], asked("validate")["fix"], asked("maintain")["dry_run"]) == (20, False, False)
    assert {name: asked(name)["command"] for name in JOBS} == {
        "run": "run",
        "catch_up": "run",
        "quality": "quality",
        "replay_quality": "quality",
        "validate": "validate",
        "maintain": "maintain",
    }
    assert {name: asked("replay_quality")[name] for name in ("replay", "begin", "end", "table")} == {
        "replay": True,
        "begin": "2000-01-01T00:00:00Z",  # a time applies to each source; with its hours it is no GTID of MariaDB
        "end": "2100-01-01T00:00:00Z",
        "table": "*",
    }
    assert [one["name"] for one in JOBS["replay_quality"]["parameters"]] == ["from", "to", "table"]
    (config,) = load_spec(ROOT / values("prod")["spec"], {}, lambda _scope, _key: "x").sources
    several = TaskSpec.model_validate(
        {"name": "t", "sources": [config, config.model_copy(update={"source_id": "other"})], "lakehouse": {"root": "/"}}
    )
    times = QualityRequest(begin=asked("replay_quality")["begin"], end=asked("replay_quality")["end"])
    assert [source.source_id for source, _ in split_by_source(several, times)] == [config.source_id, "other"]


def test_a_missing_command_is_detected() -> None:
    """The tests above can fail."""
    for arguments, wrong in (
        (["fly", "S"], "No such command 'fly'"),
        (["run", "S", "--fly"], "No such option: --fly"),
        (["maintain"], "Missing parameter: spec"),
        (["quality", "S", "--last", "many"], "should be a valid integer"),
    ):
        with pytest.raises(Exception, match=wrong):
            parsed(arguments)


@pytest.mark.parametrize("target", TARGETS)
def test_jobs_are_deployed_paused(target: str) -> None:
    """All that starts jobs automatically is paused; only variables enable it, one for each job."""
    triggers = {name: JOBS[name].get("continuous") or JOBS[name].get("schedule") for name in JOBS}
    assert {name for name, trigger in triggers.items() if trigger is None} == {"replay_quality", "maintain"}
    states = {name: trigger["pause_status"] for name, trigger in triggers.items() if trigger}
    assert {resolved(state, target) for state in states.values()} == {"PAUSED"}
    assert states == {name: f"${{var.{name}_pause_status}}" for name in states}
    assert {key for job in JOBS.values() for key in job} & {"trigger"} == set()


@pytest.mark.parametrize("name", JOBS)
def test_a_job_has_a_notification_a_timeout_and_retries(name: str) -> None:
    """A continuous job has neither of the last two; a failure that is a result is not repeated."""
    job, task = JOBS[name], wheel_task(name)
    assert job["max_concurrent_runs"] == 1
    assert job["email_notifications"]["on_failure"] == ["${var.notification_address}"]
    assert (job["timeout_seconds"] == 0) == (name == "run")
    if name == "run":
        assert "max_retries" not in task
    elif name in {"catch_up", "maintain"}:
        assert task["max_retries"] > 0
        assert task["min_retry_interval_millis"] > 0
    else:
        assert (task["max_retries"], task["disable_auto_optimization"]) == (0, True)


def test_a_run_does_not_wait_for_an_earlier_one() -> None:
    """The bundle's CLI enables queueing where it is not set. `run` is always active; `replay_quality` may wait."""
    waiting = {name for name, job in JOBS.items() if job.get("queue") != {"enabled": False}}
    assert waiting == {"run", "replay_quality"}
    skipping = {name for name, job in JOBS.items() if "notification_settings" in job}
    assert skipping == {"catch_up"}
    assert JOBS["catch_up"]["notification_settings"] == {"no_alert_for_skipped_runs": True}


COMPARED: dict[str, Callable[[float, float], bool]] = {
    "GREATER_THAN_OR_EQUAL": ge,
    "LESS_THAN_OR_EQUAL": le,
    "LESS_THAN": lt,
}
"""Operators of condition tasks that compare numbers."""


def is_maintained(hour: str, minute: str, maintenance_hour: str) -> bool:
    """Whether a run of `catch_up` that starts then runs `maintain`: its tasks one after the other."""
    tasks = {task["task_key"]: task for task in JOBS["catch_up"]["tasks"]}
    given = {
        "{{job.start_time.hour}}": hour,
        "{{job.start_time.minute}}": minute,
        "${var.maintenance_hour}": maintenance_hour,
    }
    ended = {"dmdelta": "success"}
    for key in list(tasks)[1:]:
        ((before,), task) = tasks[key]["depends_on"], tasks[key]
        assert before["task_key"] in ended
        if before.get("outcome", "success") != ended[before["task_key"]]:
            ended[key] = "excluded"
        elif "condition_task" in task:
            condition = task["condition_task"]
            left, right = (float(given.get(text, text)) for text in (condition["left"], condition["right"]))
            ended[key] = str(COMPARED[condition["op"]](left, right)).lower()
        else:
            ended[key] = "success"
    return ended["maintain"] == "success"


@pytest.mark.parametrize("text", ["{}", "{:02}"])
@pytest.mark.parametrize("hour", [0, 1, 9, 23, 24])
def test_catch_up_maintains_once_or_twice_a_day(hour: int, text: str) -> None:
    """After the replication, in runs that start in half an hour; whether or not Databricks writes 1 as 01."""
    starts = [(one, minute) for one in range(24) for minute in (0, 15, 30, 45)]
    found = [one for one in starts if is_maintained(text.format(one[0]), text.format(one[1]), str(hour))]
    assert found == [one for one in ((hour, 0), (hour, 15)) if hour < 24]
    assert BUNDLE["variables"]["maintenance_hour"]["default"] == "1"


def test_maintenance_does_not_overlap_with_catch_up() -> None:
    """Only a run of `catch_up` starts it, and at most one is active. A task that fails is not maintained."""
    starting = {
        name: [task["run_job_task"] for task in job["tasks"] if "run_job_task" in task] for name, job in JOBS.items()
    }
    assert {name: found for name, found in starting.items() if found} == {
        "catch_up": [{"job_id": "${resources.jobs.maintain.id}"}]
    }
    job = JOBS["catch_up"]
    assert job["max_concurrent_runs"] == 1
    assert [task for task in job["tasks"] if "run_if" in task] == []
    assert job["schedule"]["quartz_cron_expression"] == "0 0/15 * * * ?"
    assert JOBS["maintain"].keys() & {"schedule", "continuous", "trigger"} == set()


@pytest.mark.parametrize("target", ["prod", "prod_serverless"])
def test_the_jobs_may_start_maintenance(target: str) -> None:
    """A task that runs a job needs the right to; the service principal owns the job only if it deploys the bundle."""
    jobs = TARGETS[target]["resources"]["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "maintain": [{"level": "CAN_MANAGE_RUN", "service_principal_name": "${var.run_as}"}]
    }


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_gives_each_job_compute(target: str) -> None:
    """The same tasks, with the same libraries; a declared cluster, or an environment whose sessions can be cloned."""
    jobs = TARGETS[target]["resources"]["jobs"]
    assert jobs.keys() == JOBS.keys()
    for name, job in jobs.items():
        (task,) = job["tasks"]
        assert task["task_key"] == wheel_task(name)["task_key"]
        clusters = {cluster["job_cluster_key"] for cluster in job.get("job_clusters", [])}
        environments = {one["environment_key"]: one["spec"] for one in job.get("environments", [])}
        if target.endswith("serverless"):
            environment = environments[task["environment_key"]]
            libraries = environment["dependencies"]
            assert int(environment["environment_version"]) >= 5
        else:
            assert task["job_cluster_key"] in clusters
            libraries = [library.get("whl") or library["pypi"]["package"] for library in task["libraries"]]
        assert libraries == ["./dist/*.whl", "great-expectations>=1.9,<2", "databricks-sdk>=0.40"]
        assert "--wheel-dir dist" in BUNDLE["artifacts"]["wheel"]["build"]


def test_the_libraries_are_those_of_the_package() -> None:
    """The bundle installs the wheel without extras, and names what the extras do."""
    project = (ROOT / "pyproject.toml").read_text()
    for library in ("great-expectations>=1.9,<2", "databricks-sdk>=0.40"):
        assert f'"{library}"' in project


@pytest.mark.parametrize(("mode", "name"), [("development", "dev"), ("production", "prod")])
def test_a_target_has_one_deployment(mode: str, name: str) -> None:
    """With an identity, managers and a path; its serverless variant differs only in the compute."""
    target, variant = dict(TARGETS[name]), dict(TARGETS[f"{name}_serverless"])
    assert target["mode"] == mode
    assert target["run_as"] == {
        {"dev": "user_name", "prod": "service_principal_name"}[name]: "${var.run_as}"  # the type that the value has
    }
    assert [one["level"] for one in target["permissions"]] == ["CAN_MANAGE"]
    assert target["workspace"]["root_path"].endswith(f"/.bundle/${{bundle.name}}/{name}")
    assert (target.pop("default", False), variant.pop("default", False)) == (name == "dev", False)
    for one in (target, variant):
        one["resources"] = {kind: found for kind, found in one["resources"].items() if kind != "jobs"}
    assert target == variant


def test_only_operators_and_the_jobs_reach_the_passwords() -> None:
    """The bundle's CLI applies a target's permissions to the secret scope, too: there CAN_VIEW is READ."""
    assert "permissions" not in BUNDLE
    assert "permissions" not in the("secret_scopes")
    levels = {one["level"] for target in TARGETS.values() for one in target["permissions"]}
    assert levels == {"CAN_MANAGE"}
    scope = TARGETS["prod"]["resources"]["secret_scopes"]["passwords"]
    assert scope["permissions"] == [{"level": "READ", "service_principal_name": "${var.run_as}"}]


def test_prod_protects_what_cannot_be_recreated() -> None:
    """Its resources are those of the bundle, and have `prevent_destroy`."""
    for kind in ("schemas", "volumes", "secret_scopes"):
        ((name, kept),) = TARGETS["prod"]["resources"][kind].items()
        assert [name] == [one for part in RESOURCES for one in part.get(kind, {})]
        assert kept["lifecycle"] == {"prevent_destroy": True}
        same = kept.keys() - {"lifecycle", "permissions"}
        assert {key: kept[key] for key in same} == {key: the(kind)[key] for key in same}


@pytest.mark.parametrize("target", TARGETS)
def test_a_targets_spec_uses_its_resources(target: str) -> None:
    """Tables in its catalog, own tables in its schema, the relay on its Volume, passwords from its secret scope."""
    scopes: list[str] = []

    def secret(scope: str, key: str) -> str:
        scopes.append(scope)
        return f"the value of {key}"

    schema, volume = the("schemas"), the("volumes")
    spec = load_spec(ROOT / values(target)["spec"], {}, secret)
    assert (
        spec.lakehouse.catalog == resolved(schema["catalog_name"], target) == resolved(volume["catalog_name"], target)
    )
    assert spec.lakehouse.metadata == resolved(schema["name"], target) == resolved(volume["schema_name"], target)
    place = f"/Volumes/{spec.lakehouse.catalog}/{spec.lakehouse.metadata}/{volume['name']}"
    assert [str(spec.relay_dir(source)).startswith(place) for source in spec.sources] == [True]
    assert scopes == [resolved(the("secret_scopes")["name"], target)]
    assert [source.password.get_secret_value() for source in spec.sources] == ["the value of shop-password"]


def test_dev_and_prod_share_nothing() -> None:
    """So that a deployment for development cannot write what is in production."""
    for name in ("spec", "catalog", "secret_scope"):
        assert values("dev")[name] != values("prod")[name]


def test_variables_are_described_and_used() -> None:
    """Each has a value in every target, except those that are set when prod is deployed."""
    texts = "".join(file.read_text() for file in FILES)
    assert BUNDLE["variables"].keys() == set(VARIABLE.findall(texts))
    assert all(one["description"].endswith(".") for one in BUNDLE["variables"].values())
    for target in TARGETS.values():
        valued = {name for name, one in BUNDLE["variables"].items() if "default" in one} | target["variables"].keys()
        missing = BUNDLE["variables"].keys() - valued
        assert missing == (GIVEN.keys() if target["mode"] == "production" else set())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_merge_keys_name_anchors(file: Path) -> None:
    """The bundle's CLI accepts nothing else after `<<:`."""
    events = list(yaml.parse(file.read_text()))
    merges = [number for number, event in enumerate(events) if getattr(event, "value", None) == "<<"]
    assert [event for number in merges if not isinstance(event := events[number + 1], yaml.AliasEvent)] == []
    assert bool(merges) == (file.name == "databricks.yml")


def test_the_bundle_includes_each_resource_under_its_kind() -> None:
    """`NAME.KIND.yml` has the one resource NAME."""
    assert BUNDLE["include"] == ["resources/*.yml"]
    for file, part in zip(FILES[1:], RESOURCES, strict=True):
        ((kind, found),) = part.items()
        (one,) = found
        assert isinstance(found[one], Mapping)
        assert file.name == f"{one}.{kind.removesuffix('s')}.yml"


def test_the_documentation_lists_the_jobs_and_the_variables() -> None:
    """In its two tables, with the names of the targets in the text."""
    page = (ROOT / "docs/databricks.md").read_text()
    first = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in page.splitlines() if row.startswith("| `")]
    assert set().union(*first) == {*JOBS, *BUNDLE["variables"]}
    assert all(f"`{target}`" in page for target in TARGETS)
