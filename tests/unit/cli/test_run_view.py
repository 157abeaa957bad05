"""The live view of `dmdelta run`: golden frames in `tests/golden/run_view`, and a run on a pseudo-terminal.

After an intended change: `python -m tests.unit.cli.test_run_view` rewrites the frames.
"""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from datetime import timezone
from pathlib import Path

import pytest
from rich.console import Console

import dmdelta.cli.status_view as status_view_module
from dmdelta.cli import run as command
from dmdelta.cli.run_view import plan_stopping, print_line, run_frame
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.telemetry.counters import Progress, RunSummary
from dmdelta.engine.telemetry.task_status import Attention, SnapshotProgress
from dmdelta.logging import readable
from tests.support.statuses import source, table, task

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "run_view"
STATUS = task(
    [
        source(
            sink_error="Access denied for user 'dm'@'%'", stop_waits_for=("applying shop.orders", "sink", "checkpoint")
        )
    ],
    [
        table("shop.customers"),
        table(
            "shop.orders",
            phase="snapshot",
            attention=Attention.SNAPSHOT,
            snapshot=SnapshotProgress(chunks=3, all_chunks=10, rows=31_000, all_rows=100_000, seconds_left=40.0),
        ),
        table(
            "shop.lines",
            phase="stopped",
            attention=Attention.STOPPED,
            reason="silver cannot follow ALTER TABLE `lines` ADD COLUMN `c` TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)",
            hint="dmdelta binlog skip SPEC --position=1/binlog.000042:97110",
        ),
    ],
)


def _utc(moment):
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def rendered(width, status=STATUS, stopping="stopping at a transaction boundary"):
    console = Console(file=io.StringIO(), width=width, record=True, highlight=False)
    console.print(run_frame(status, stopping))
    return "".join(line.rstrip() + "\n" for line in console.export_text().splitlines())


@pytest.mark.parametrize("width", [80, 100])
def test_the_frame_is_as_recorded(width, monkeypatch):
    """Stages, lag, rate, the snapshot's progress, tables that need attention, and what a stop waits for."""
    monkeypatch.setattr(status_view_module, "_time", _utc)
    text = rendered(width)
    assert text == (GOLDEN / f"{width}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= width


def test_a_wide_terminal_gets_the_frame_of_100_columns(monkeypatch):
    """The same as for `dmdelta status`."""
    monkeypatch.setattr(status_view_module, "_time", _utc)
    assert rendered(300) == rendered(100)


@pytest.mark.parametrize(
    ("status", "is_starting"),
    [
        (None, True),
        (task([], state="starting"), True),
        (task([], state="running"), True),
        (task([], state="paused"), False),
        (STATUS, False),
    ],
)
def test_a_start_is_shown(status, is_starting):
    """The view shows the start until the sources are open."""
    assert ("starting Spark and opening the sources" in rendered(100, status, None)) is is_starting


def test_a_stop_is_shown_and_a_pause_is_not():
    """The status shows the state of a pause."""
    stop = StopRequest()
    assert plan_stopping(stop) is None
    stop.pause()
    assert plan_stopping(stop) is None
    stop.request()
    assert plan_stopping(stop) == "stopping at a transaction boundary"
    stop.signalled = True
    assert plan_stopping(stop).endswith("a second signal ends the process immediately; no data is lost")


LINE = {
    "ts": "2026-11-21T10:00:00.000+00:00",
    "level": "WARNING",
    "logger": "dmdelta.source.relay",
    "msg": "source lost, reconnecting",
    "context": {"source": "s1", "tables": ["a.b", "a.c"], "end": None, "why": "gone away", "hint": "start the server"},
}


def printed(line):
    console = Console(file=io.StringIO(), width=40)
    print_line(console, line, 30)
    return console.file.getvalue()


def test_lines_of_children_are_readable():
    """A relay logs JSON lines: warnings are shown as text on one line at any width; lower levels are not shown."""
    text = printed(json.dumps(LINE))
    assert text == readable(LINE) + "\n"
    assert text[2] == ":"
    assert text[8:] == (
        " warning: source lost, reconnecting: gone away (source=s1, tables=a.b, a.c)\n  hint: start the server\n"
    )
    assert printed(json.dumps({**LINE, "level": "INFO"})) == ""
    failed = {**LINE, "level": "ERROR", "exception": {"class": "KeyError", "msg": "'x'", "stacktrace": ["  File 1\n"]}}
    assert printed(json.dumps(failed)).endswith("start the server\n  File 1\n  KeyError: 'x'\n")


@pytest.mark.parametrize("line", ["# A fatal error [x]", '{"ts": broken', '{"ts": 1}', "", "  at x.y.Z(Z.java:1)"])
def test_unknown_lines_pass(line):
    """Lines of any form are printed unchanged."""
    assert printed(line) == line + "\n"


PROGRAM = """
import subprocess, sys, time
from dmdelta.cli.progress import print_summary, showing_run
from dmdelta.engine.control.cancellation import StopRequest, stopping_on_signals
from dmdelta.engine.telemetry.counters import Progress, RunSummary
from dmdelta.logging import get_logger
from tests.unit.cli.test_run_view import STATUS
reads = 0
def read():
    global reads
    reads += 1
    if reads == 2:
        raise RuntimeError("a race")
    return STATUS
stop, progress = StopRequest(), Progress(2.5, 3, {"one": "1/binlog.000001:4"}, 1200, {"shop.orders": 1200})
with showing_run(stop, as_json="--json" in sys.argv) as output, stopping_on_signals(stop):
    output.follow(read)
    output.report(progress)
    subprocess.run(["sh", "-c", "echo JVM says something >&2"], check=True)
    get_logger("dmdelta.x").info("batch landed")
    get_logger("dmdelta.x").warning("table waits", table="shop.t")
    sys.stderr.write("ready\\n")
    while not stop.wait(0.1):
        pass
    time.sleep(0.5)
print_summary(RunSummary(progress, stopped=True), as_json="--json" in sys.argv)
print("after the view", file=sys.stderr)
"""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class OnTerminal:
    """A program with a pseudo-terminal as stdin, stdout and stderr, except the given ones."""

    def __init__(self, *arguments, **streams):
        self.terminal, inner = pty.openpty()
        streams = {"stdin": inner, "stdout": inner, "stderr": inner, **streams}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"}
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], env=environment, **streams)
        os.close(inner)
        self.output = ""

    def read(self, text=None):
        """Read until `text` is shown, or to the end."""
        deadline = time.monotonic() + 60
        while text is None or text not in self.text:
            assert time.monotonic() < deadline, self.output
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    data = os.read(self.terminal, 1 << 16)
                except OSError:  # the other end is closed
                    data = b""
                self.output += data.decode()
                if not data:
                    assert text is None, self.output
                    return
            elif text is None and self.process.poll() is not None:
                return

    @property
    def text(self):
        """The output; a control sequence ends a line."""
        return CONTROL.sub("\n", self.output).replace("\r", "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self.terminal)


def test_a_terminal_shows_the_view_below_readable_lines():
    """Ctrl-C shows what the stop waits for; at its end the summary remains."""
    with OnTerminal() as run:
        for text in ("ready", "shop.orders", "status cannot be shown: RuntimeError"):
            run.read(text)
        assert "stopping at a transaction boundary" not in run.text
        run.process.send_signal(signal.SIGINT)
        run.read("a second signal ends the process immediately")
        run.read()
        assert run.process.wait(60) == 0
        lines = [line for line in run.text.splitlines() if line]
        assert "JVM says something" in lines
        assert any(re.fullmatch(r"\d\d:\d\d:\d\d warning: table waits \(table=shop.t\)", line) for line in lines)
        assert "batch landed" not in run.text
        assert '"progress"' not in run.text
        assert lines[-2:] == ["stopped", "after the view"]
        assert run.output.rindex("\x1b[?25h") > run.output.rindex("\x1b[?25l")


def test_a_file_for_stderr_gets_the_log_as_json_lines(tmp_path):
    """While the terminal shows the view."""
    with (tmp_path / "log").open("wb") as log, OnTerminal(stderr=log) as run:
        run.read("shop.orders")
        run.process.send_signal(signal.SIGTERM)
        run.read()
        assert run.process.wait(60) == 0
    said = (tmp_path / "log").read_text().splitlines()
    assert {"JVM says something", "ready", "after the view"} <= set(said)
    assert {"batch landed", "table waits"} <= {json.loads(line)["msg"] for line in said if line.startswith("{")}
    assert "JVM says something" not in run.text


@pytest.mark.parametrize("on_terminal", [True, False])
def test_json_lines_on_request_and_in_a_pipe(on_terminal):
    """No view, no control sequence; every log line from INFO on."""
    streams = {} if on_terminal else {"stdout": subprocess.PIPE}
    with OnTerminal(*(["--json"] if on_terminal else []), **streams) as run:
        run.read("ready")
        run.process.send_signal(signal.SIGINT)
        run.read("stop requested by a signal")
        run.read("after the view")
        assert run.process.wait(60) == 0
        assert "\x1b" not in run.output
        lines = run.text.splitlines()
        printed = lines if on_terminal else run.process.stdout.read().decode().splitlines()
    documents = [json.loads(line) for line in printed if line.startswith(('{"progress"', '{"summary"'))]
    assert [next(iter(document)) for document in documents] == ["progress", "summary"]
    logged = [json.loads(line)["msg"] for line in lines if line.startswith('{"ts"')]
    assert {"batch landed", "table waits", "stop requested by a signal"} <= set(logged), lines


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_passes_its_stop_and_its_format(as_json, tmp_path, monkeypatch, capsys):
    """`--json` reaches the summary, too; the second Ctrl-C of a run ends the process."""
    spec = tmp_path / "task.yml"
    spec.write_text("name: shop\nsources: [{source-id: s1, binlog-dir: .}]\nlakehouse: {root: lake}\n")
    seen = []

    def run_task(_task, options, report, stop, follow):
        seen.append((options.until_caught_up, stop.requested, signal.getsignal(signal.SIGINT)))
        report(PROGRESS)
        follow(lambda: STATUS)
        return RunSummary(PROGRESS, stopped=False)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("dmdelta.engine.run.runner.run_task", run_task)
    command.run(spec, until_caught_up=True, json=as_json)
    assert seen == [(True, False, signal.SIG_DFL)]
    assert signal.getsignal(signal.SIGINT) is before
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [next(iter(document)) for document in printed] == ["progress", "summary"]


PROGRESS = Progress(2.5, 3, {"one": "1/binlog.000001:4"}, 1200, {"shop.orders": 1200})


if __name__ == "__main__":
    status_view_module._time = _utc
    for each in (80, 100):
        (GOLDEN / f"{each}.txt").write_text(rendered(each), encoding="utf-8")
