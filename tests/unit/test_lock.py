"""The lock files: development and CI install what pyproject.toml requires, and nothing that is not pinned."""

import re
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest installs it

ROOT = Path(__file__).parents[2]
LOCK, BUILD = (ROOT / name for name in ("requirements.lock", "requirements-build.lock"))
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def entries(path):
    """Each pinned requirement with the number of its hashes."""
    text = re.sub(r"^ *#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        yield Requirement(line.partition("--hash")[0].strip()), len(HASH.findall(line)), line


def pinned(path, python):
    """Version by name, on Linux with this Python."""
    facts = {"python_version": python, "python_full_version": f"{python}.5", "sys_platform": "linux"}
    facts |= {"platform_system": "Linux", "platform_python_implementation": "CPython", "implementation_name": "cpython"}
    chosen = [one for one, _, _ in entries(path) if one.marker is None or one.marker.evaluate(facts)]
    names = [canonicalize_name(one.name) for one in chosen]
    assert len(names) == len(set(names))
    return dict(zip(names, (Version(next(iter(one.specifier)).version) for one in chosen), strict=True))


def wanted():
    """The requirements in pyproject.toml: dependencies and all extras."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    asked = [Requirement(one) for part in (project["dependencies"], *extras) for one in part]
    return [one for one in asked if one.name != project["name"]]  # `all` requires other extras


@pytest.mark.parametrize("path", [LOCK, BUILD], ids=lambda path: path.name)
def test_each_line_is_one_version_with_its_hashes(path):
    """There are no URLs: the machine's configuration determines the index."""
    for requirement, hashes, line in entries(path):
        assert [one.operator for one in requirement.specifier] == ["=="], line
        assert hashes, line
        assert requirement.url is None
    assert not re.search(r"https?:|file:|--index|--find-links|/home/|/tmp/", path.read_text())


@pytest.mark.parametrize("python", PYTHONS)
def test_all_requirements_of_the_project_are_pinned(python):
    """For every Python, at a version that pyproject.toml allows; it pins pyspark and delta-spark itself."""
    versions = pinned(LOCK, python)
    for requirement in wanted():
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name}: make lock"
        assert version in requirement.specifier, f"{requirement.name}: make lock"
    assert {"pyspark", "delta-spark"} <= {one.name for one in wanted() if str(one.specifier).startswith("==")}


def test_all_is_what_a_standalone_machine_needs():
    """One extra for local Spark, quality, verify and Connect, without the development tools."""
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = map(Requirement, extras["all"])
    assert everything.name == PROJECT["project"]["name"]
    assert everything.extras == {"local", "quality", "verify", "connect"} <= extras.keys()


def test_builds_use_what_is_pinned():
    """The build requirement of pyproject.toml, at the version in the lock file."""
    (needed,) = map(Requirement, PROJECT["build-system"]["requires"])
    versions = pinned(BUILD, "3.12")
    assert list(versions) == [needed.name]
    assert versions[needed.name] in needed.specifier
    assert pinned(LOCK, "3.12")[needed.name] == versions[needed.name]


def test_what_is_installed_here_is_what_is_pinned():
    """The tests prove nothing about other versions."""
    versions = pinned(LOCK, f"{sys.version_info.major}.{sys.version_info.minor}")
    del versions["setuptools"]  # for builds; environments created before it was pinned have another version
    here = [sysconfig.get_path("purelib")]  # not the folders that another test may have added to sys.path
    installed = {canonicalize_name(one.metadata["Name"]): Version(one.version) for one in distributions(path=here)}
    assert installed.keys() >= versions.keys()
    assert {name: installed[name] for name in versions} == versions


def test_make_installs_from_the_lock():
    """With required hashes, and without resolving other packages."""
    (recipe,) = re.findall(r"^\$\(VENV\)/installed:(.*?)^\n", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    installs = re.findall(r"pip install .*", recipe)
    assert len(installs) == 3
    for line, file in zip(installs, (BUILD, LOCK), strict=False):
        assert "--require-hashes" in line
        assert line.endswith(f"-r {file.name}")
    assert "--no-deps --no-build-isolation" in installs[-1]
    assert LOCK.name in recipe.partition("\n")[0]
