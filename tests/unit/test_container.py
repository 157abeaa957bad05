"""The container file: what it copies, installs and starts exists. Nothing is built."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = (ROOT / "Containerfile").read_text()


def test_what_it_copies_reaches_the_build() -> None:
    """Each source exists, and `.dockerignore`, which excludes everything else, includes it."""
    copied = [name for line in re.findall(r"^COPY (?!--)(.+)$", FILE, re.MULTILINE) for name in line.split()[:-1]]
    let_through = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"pyproject.toml", "dmdelta"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in let_through


def test_what_it_installs_and_starts_exists() -> None:
    """The extras, the module that fetches jars, the command; it does not run as root."""
    project = (ROOT / "pyproject.toml").read_text()
    (extras,) = re.findall(r"\.whl\)\[(.+?)\]", FILE)
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(","))
    (module,) = re.findall(r"python -m (\S+)", FILE)
    assert find_spec(module) is not None
    (command,) = re.findall(r'ENTRYPOINT \["(\w+)"\]', FILE)
    assert f'{command} = "dmdelta.cli.main:main"' in project
    assert FILE.index("USER dmdelta") < FILE.index("ENTRYPOINT")
