"""The Databricks bundle: its jobs use existing commands, options and files, and each target defines their compute."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from dmdelta.cli.main import app
from dmdelta.config import load_spec

ROOT = Path(__file__).parents[3]
BUNDLE = yaml.safe_load((ROOT / "databricks.yml").read_text())
JOBS = {
    name: job
    for pattern in BUNDLE["include"]
    for file in sorted(ROOT.glob(pattern))
    for name, job in yaml.safe_load(file.read_text())["resources"]["jobs"].items()
}
TARGETS = {name: target["resources"]["jobs"] for name, target in BUNDLE["targets"].items()}


def resolved(text: str) -> str:
    """A parameter as the bundle's CLI renders it."""
    text = re.sub(r"\$\{var\.(\w+)\}", lambda found: BUNDLE["variables"][found[1]]["default"], text)
    return text.replace("${workspace.file_path}", str(ROOT))


def asked(name: str) -> dict[str, Any]:
    """The command line of a job."""
    (task,) = JOBS[name]["tasks"]
    given = {one["name"]: str(one["default"]) for one in JOBS[name].get("parameters", [])}
    texts = [resolved(text) for text in task["python_wheel_task"]["parameters"]]
    return parsed([re.sub(r"\{\{job\.parameters\.(\w+)\}\}", lambda found: given[found[1]], text) for text in texts])


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Parse a command line without running it."""
    command: Any = typer.main.get_command(app)
    context = None
    while hasattr(command, "commands"):
        context = command.make_context(command.name, arguments, parent=context)
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
    return command.make_context(command.name, arguments, parent=context).params


@pytest.mark.parametrize("name", JOBS)
def test_a_job_runs_an_existing_command(name: str) -> None:
    """The wheel's entry point, a valid command line, a shipped spec."""
    (task,) = JOBS[name]["tasks"]
    wheel = task["python_wheel_task"]
    project = (ROOT / "pyproject.toml").read_text()
    assert f'name = "{wheel["package_name"]}"' in project
    assert f'{wheel["entry_point"]} = "dmdelta.cli.main:main"' in project
    spec = asked(name)["spec"]
    assert spec.relative_to(ROOT).parts[0] in BUNDLE["sync"]["paths"]
    assert spec.is_file()


def test_the_jobs_do_what_their_names_say() -> None:
    """One runs continuously, one ends, one evaluates quality; only one of the two that write is scheduled."""
    assert (asked("run")["until_caught_up"], asked("catch_up")["until_caught_up"]) == (False, True)
    assert asked("quality")["last"] == 20
    assert {name: asked("replay_quality")[name] for name in ("replay", "begin", "end", "table")} == {
        "replay": True,
        "begin": "batch:1",
        "end": "2100-01-01",
        "table": "*",
    }
    assert [one["name"] for one in JOBS["replay_quality"]["parameters"]] == ["from", "to", "table"]
    assert "schedule" not in JOBS["replay_quality"]
    assert JOBS["run"]["continuous"]["pause_status"] == "UNPAUSED"
    assert JOBS["catch_up"]["schedule"]["pause_status"] == "PAUSED"


def test_a_missing_command_is_detected() -> None:
    """So that the tests above can fail."""
    for arguments, wrong in ((["fly", "S"], "No such command 'fly'"), (["run", "S", "--fly"], "No such option: --fly")):
        with pytest.raises(Exception, match=wrong):
            parsed(arguments)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_gives_each_job_compute(target: str) -> None:
    """The same tasks, with the wheel; a declared cluster or environment."""
    assert TARGETS[target].keys() == JOBS.keys()
    for name, job in TARGETS[target].items():
        (task,), (told,) = job["tasks"], JOBS[name]["tasks"]
        assert task["task_key"] == told["task_key"]
        clusters = {cluster["job_cluster_key"] for cluster in job.get("job_clusters", [])}
        environments = {one["environment_key"]: one["spec"] for one in job.get("environments", [])}
        if target == "serverless":
            libraries = environments[task["environment_key"]]["dependencies"]
        else:
            assert task["job_cluster_key"] in clusters
            libraries = [library.get("whl") or library["pypi"]["package"] for library in task["libraries"]]
        assert "./dist/*.whl" in libraries
        assert "--wheel-dir dist" in BUNDLE["artifacts"]["wheel"]["build"]


def test_the_example_spec_is_valid_for_databricks() -> None:
    """It is valid, its tables are in a catalog, its relay on a Volume, its password a secret of the workspace."""
    spec = load_spec(ROOT / BUNDLE["variables"]["spec"]["default"], {}, lambda scope, key: f"{key} of {scope}")
    (source,) = spec.sources
    assert spec.lakehouse.catalog == "main"
    assert Path(spec.relay_dir(source)).is_relative_to("/Volumes/main/dm_meta")
    assert source.password.get_secret_value() == "shop-password of dmdelta"
