"""The folders of the package, and the import contracts of its layers."""

import os
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_MODULES = 16
FREE = {"dmdelta/cli", "dmdelta/config"}
"""One module per command, and one per section of the spec."""


def test_no_folder_has_too_many_modules():
    folders = {path.parent for path in (ROOT / "dmdelta").rglob("*.py")}
    modules = {
        folder.relative_to(ROOT).as_posix(): [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        for folder in folders
    }
    assert modules.keys() >= FREE
    crowded = {folder: len(found) for folder, found in modules.items() if len(found) > MOST_MODULES}
    assert crowded.keys() <= FREE, crowded


def test_every_package_says_what_it_does():
    inits = list((ROOT / "dmdelta").rglob("__init__.py"))
    assert inits
    assert [path for path in inits if not path.read_text("utf-8").startswith('"""')] == []


def test_there_are_no_import_cycles():
    graph = grimp.build_graph("dmdelta", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    order = tuple(TopologicalSorter(imports).static_order())  # CycleError names the cycle
    assert set(order) == graph.modules


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of its contracts."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "dmdelta", copy / "dmdelta", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, text=True, capture_output=True, check=False
    )


def test_the_contracts_hold(tree):
    found = lint_imports(tree)
    assert found.returncode == 0, found.stdout
    assert "0 broken" in found.stdout


@pytest.mark.parametrize(
    ("module", "statement", "contract"),
    [
        ("engine/task/task.py", "import dmdelta.engine.run.runner", "the ladder of the engine"),
        ("engine/ingest/loop.py", "import dmdelta.engine.apply.loop", "the ladder of the engine"),
        ("silver/schema/lookup.py", "import dmdelta.silver.history.repair", "the ladder of silver"),
        ("silver/rows/commits.py", "import dmdelta.silver.table.table", "the ladder of silver"),
        ("source/server.py", "import dmdelta.source.relay.dump", "the ladder of the source"),
        ("source/snapshot/chunk.py", "import dmdelta.source.preflight.finding", "the ladder of the source"),
        ("engine/relay/supervisor.py", "import dmdelta.binlog.events.header", "only the codec"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(tree, module, statement, contract):
    place = tree / "dmdelta" / module
    text = place.read_text("utf-8")
    place.write_text(f"{text}\n{statement}\n", "utf-8")
    try:
        found = lint_imports(tree)
    finally:
        place.write_text(text, "utf-8")
    assert found.returncode == 1
    broken = [line for line in found.stdout.splitlines() if line.endswith(" BROKEN")]
    assert len(broken) == 1
    assert broken[0].startswith(contract)
    assert statement.split(".")[-2] in found.stdout.partition("Broken contracts")[2]


def test_a_package_that_no_layer_names_breaks_its_contract(tree):
    place = tree / "dmdelta" / "engine" / "unnamed.py"
    place.write_text('"""A module beside the layers."""\n', "utf-8")
    try:
        found = lint_imports(tree)
    finally:
        place.unlink()
    assert found.returncode == 1
    assert "unnamed" in found.stdout
