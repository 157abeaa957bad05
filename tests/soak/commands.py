"""Commands of `dmdelta` in this process, whose Spark is warm."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

from dmdelta.cli.main import execute
from tests.soak.task import SoakTask


class Refused(Exception):
    """A command that did not succeed: exit code and stderr."""


def ask(task: SoakTask, command: str, *arguments: str) -> list[dict[str, object]]:
    """A command's answer.

    Raises:
        Refused: it did not succeed.
    """
    code, out, said = run_command(task, command, *arguments)
    assert "Traceback" not in said, said
    if code:
        raise Refused(f"dmdelta {command} {' '.join(arguments)}: exit code {code}\n{said}")
    answer = json.loads(out)
    return list(answer) if isinstance(answer, list) else [answer]


def run_command(task: SoakTask, command: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, the JSON document, and the end of stderr."""
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        code = execute([command, str(task.spec), *arguments, "--json"])
    return code, out.getvalue(), said.getvalue()[-4000:]
