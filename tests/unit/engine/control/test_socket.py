"""The control socket: real sockets, a target that records what it executes."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.engine.control import socket_server
from dmdelta.engine.control.protocol import (
    MAX_REQUEST_BYTES,
    ChangeState,
    DecideOperator,
    ListOperators,
    ReadStatus,
    RequestLine,
    TakeSnapshot,
    parse_request,
    request_line,
)
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.control.socket_path import MAX_PATH_BYTES, control_socket
from dmdelta.engine.control.socket_server import serving_commands
from dmdelta.engine.control.state import Answer, Request, State
from dmdelta.errors import ConfigError, SourceUnavailable, StageFailed
from dmdelta.model.position import Position

NOBODY = 65534


class Recorder:
    """Executes nothing, and records the requests."""

    def __init__(self, result=None):
        self.commands = []
        self.result = result

    def execute(self, command):
        self.commands.append(command)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def spec_in(folder, name="t"):
    path = folder / "task.yml"
    document = {
        "name": name,
        "sources": [{"source-id": "s1", "binlog-dir": str(folder)}],
        "lakehouse": {"root": str(folder)},
    }
    path.write_text(yaml.safe_dump(document))
    return load_spec(path)


@pytest.fixture
def spec():
    """A socket in a folder with a short path that every account can enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield spec_in(Path(folder))


def sent(path, line):
    """The raw answer to a raw line; b'' if the connection is closed."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        connection.sendall(line)
        with connection.makefile("rb") as answers, contextlib.suppress(ConnectionResetError):
            return answers.readline()
    return b""


@pytest.mark.parametrize(
    "command",
    [
        ChangeState(command=Request.PAUSE),
        ReadStatus(),
        TakeSnapshot(tables=["shop.orders"]),
        DecideOperator(source=None, position="1/b.000001:4", verb="replace", statements=["SELECT 'é'"]),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_command_is_executed_as_it_was_sent(spec, command):
    """The target gets the same command; the client gets the record as plain values."""
    target = Recorder([Answer("t", State.PAUSED, "host:1"), Position(1, "b.000001", 4)])
    with serving_commands(spec, target):
        reply = ask_running(spec, command)
    assert target.commands == [command]
    assert reply.result == [{"task": "t", "state": "paused", "process": "host:1", "note": None}, "1/b.000001:4"]


def test_an_error_arrives_with_its_kind_and_hint(spec):
    """So the exit code is that of the error, whatever executed the command."""
    target = Recorder(SourceUnavailable("gone", hint="wait", source="s1"))
    with serving_commands(spec, target), pytest.raises(SourceUnavailable) as raised:
        ask_running(spec, ListOperators())
    assert (raised.value.message, raised.value.hint, raised.value.context) == ("gone", "wait", {"source": "s1"})


def test_an_unexpected_error_shows_no_value(spec):
    """Its message may quote a row: the answer has its type and place, and the server continues."""
    target = Recorder(ValueError("secret-value"))
    with serving_commands(spec, target):
        with pytest.raises(StageFailed, match="ValueError") as raised:
            ask_running(spec, ListOperators())
        assert "secret-value" not in str(raised.value)
        target.result = "fine"
        assert ask_running(spec, ListOperators()).result == "fine"


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"pause\n",
        b"\xff\xfe\n",
        b'{"version": 1, "request": {"command": "pause"}\n',
        b'{"version": 2, "request": {"command": "pause"}}\n',
        b'{"request": "pause", "version": 1}\n',
        b'{"version": 1, "request": {"command": "drop"}}\n',
        b'{"version": 1, "request": {"command": "snapshot"}}\n',
        b'{"version": 1, "request": {"command": "pause", "force": true}}\n',
        b'{"version": 1, "request": {"command": "pause"}, "user": "root"}\n',
        b'{"version": 1, "request": {"command": "snapshot", "tables": ["' + b"x" * MAX_REQUEST_BYTES + b'"]}}\n',
    ],
    ids=lambda line: line[:60].decode(errors="replace"),
)
def test_an_invalid_request_has_no_effect(spec, line):
    """It is answered with an error; the next request is served."""
    target = Recorder("fine")
    with serving_commands(spec, target):
        answer = json.loads(sent(control_socket(spec), line))
        assert answer["version"] == 1
        assert answer["error"]["kind"] == "ConfigError"
        assert "request" in answer["error"]["message"]
        assert target.commands == []
        assert ask_running(spec, ListOperators()).result == "fine"


def test_a_request_may_have_a_mebibyte():
    """A snapshot may list many tables; a longer request is refused."""
    smallest = request_line(TakeSnapshot(tables=[""]))
    command = TakeSnapshot(tables=["x" * (1_048_576 - len(smallest))])
    assert parse_request(request_line(command)) == command
    with pytest.raises(ConfigError, match="longer than 1,048,576 bytes"):
        parse_request(b" " + request_line(command))


def test_a_connection_serves_several_requests(spec):
    """One line each."""
    with serving_commands(spec, target := Recorder("fine")):
        line = RequestLine(request=ListOperators()).model_dump_json().encode() + b"\n"
        with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as answers:
            connection.connect(str(control_socket(spec)))
            for count in (1, 2):
                connection.sendall(line)
                assert json.loads(answers.readline())["result"] == "fine"
                assert len(target.commands) == count


def test_an_incomplete_line_does_not_block_other_clients(spec):
    """Others are served meanwhile."""
    with serving_commands(spec, Recorder("fine")), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(control_socket(spec)))
        connection.sendall(b'{"version": 1,')
        assert ask_running(spec, ListOperators()).result == "fine"


def test_a_task_that_does_not_run_has_no_socket(spec):
    """There is none before and after the run; the end of the task waits for the answer in progress."""
    assert ask_running(spec, ListOperators()) is None
    begun, release = threading.Event(), threading.Event()

    class Slow(Recorder):
        def execute(self, command):
            begun.set()
            assert release.wait(10)
            return "late"

    replies = []
    with serving_commands(spec, Slow()):
        client = threading.Thread(target=lambda: replies.append(ask_running(spec, ListOperators())))
        client.start()
        assert begun.wait(10)
        threading.Timer(0.1, release.set).start()
    client.join(10)
    assert replies[0].result == "late"
    assert not control_socket(spec).exists()
    assert ask_running(spec, ListOperators()) is None


def test_the_socket_of_a_killed_task_is_stale(spec):
    """Commands find no task, and the next run serves the socket again."""
    program = textwrap.dedent(
        """
        import sys, time
        from dmdelta.config import load_spec
        from dmdelta.engine.control.socket_server import serving_commands
        with serving_commands(load_spec(sys.argv[1]), None):
            print("serving", flush=True)
            time.sleep(60)
        """
    )
    path = Path(spec.lakehouse.root) / "task.yml"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"serving\n"
        process.kill()
    assert control_socket(spec).exists()
    assert ask_running(spec, ListOperators()) is None
    with serving_commands(spec, Recorder("again")):
        assert ask_running(spec, ListOperators()).result == "again"


def test_a_second_run_does_not_take_the_socket(spec):
    """It is about to be fenced, and the first one continues."""
    with serving_commands(spec, Recorder("first")), serving_commands(spec, second := Recorder("second")):
        assert ask_running(spec, ListOperators()).result == "first"
    assert second.commands == []
    assert ask_running(spec, ListOperators()) is None


def test_only_the_own_account_can_connect(spec):
    """The mode of the socket excludes others."""
    with serving_commands(spec, Recorder("fine")):
        mode = control_socket(spec).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        if os.geteuid() == 0:
            assert b"PermissionError" in as_nobody(control_socket(spec))


def test_another_account_is_refused_whatever_the_mode(spec):
    """The server checks the account of the peer, as reported by the kernel."""
    with serving_commands(spec, target := Recorder("fine")):
        control_socket(spec).chmod(0o666)
        if os.geteuid() == 0:
            assert as_nobody(control_socket(spec)) == b"closed\n"
        else:
            with patch.object(socket_server.os, "geteuid", lambda: NOBODY):
                line = RequestLine(request=ListOperators()).model_dump_json().encode() + b"\n"
                assert sent(control_socket(spec), line) == b""
        assert target.commands == []
        assert ask_running(spec, ListOperators()).result == "fine"


def as_nobody(path):
    """The result of a connection from another account."""
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.settimeout(10); print(s.recv(1) or 'closed')"
    )
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", program, str(path)], user=NOBODY, capture_output=True, check=False, cwd="/"
    )
    return done.stdout or done.stderr


def test_a_path_that_is_too_long_for_a_socket_is_replaced(tmp_path):
    """The replacement is in a private folder in the temporary files; client and task use the same path."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    spec = spec_in(folder)
    path = control_socket(spec)
    assert len(os.fsencode(path)) <= MAX_PATH_BYTES
    assert path.parent.parent == Path(tempfile.gettempdir())
    with serving_commands(spec, Recorder("fine")):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert ask_running(spec, ListOperators()).result == "fine"
    with contextlib.suppress(OSError):
        path.with_suffix(".lock").unlink()
        path.parent.rmdir()


def test_a_folder_of_another_account_is_not_used(tmp_path):
    """In a folder like /tmp, any account can create it beforehand."""
    tmp_path.chmod(0o1777)
    folder = tmp_path / "dmdelta-1"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    with patch.object(socket_server.os, "geteuid", lambda: 12345), pytest.raises(ConfigError, match="another account"):
        socket_server.make_folder(folder)
