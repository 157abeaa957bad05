"""Records on a terminal, in a pipe and as JSON."""

import io
import json
import logging
import sys
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.cli import progress, render
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.telemetry.counters import Progress, RunSummary, TableLoad
from dmdelta.errors import LakehouseError
from dmdelta.model.change import Op
from dmdelta.model.plain import plain
from dmdelta.model.position import Position


@dataclass(frozen=True)
class Line:
    table: str
    at: Position | None
    rows: int
    op: Op = Op.INSERT
    note: str | None = None


@dataclass(frozen=True)
class Whole:
    task: str
    lag: timedelta
    lines: tuple[Line, ...]
    problem: str | None = None


POSITION = Position(1, "binlog.000001", 4)
WHOLE = Whole("shop", timedelta(seconds=1.5), (Line("größe[b]", POSITION, 1200), Line("b", None, 3)))


def test_json_is_one_document_of_plain_values(capsys):
    """Positions, enums, durations and times become text or numbers that any tool can read."""
    render.record(WHOLE, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["lag"] == 1.5
    assert shown["lines"][0] == {
        "table": "größe[b]",
        "at": "1/binlog.000001:4",
        "rows": 1200,
        "op": "insert",
        "note": None,
    }
    assert plain(datetime(2026, 1, 2, tzinfo=timezone.utc)) == "2026-01-02T00:00:00+00:00"
    assert plain({"a": {1}}) == {"a": [1]}


def test_a_record_is_lines_and_tables(capsys):
    """Single values come first, then each list under its name; empty columns and values are omitted."""
    render.record(WHOLE, as_json=False)
    shown = capsys.readouterr().out
    assert "task: shop" in shown
    assert "größe[b]" in shown
    assert "1,200" in shown
    assert "note" not in shown
    assert "problem" not in shown


def test_no_rows_are_a_message_or_an_empty_list(capsys):
    """An empty result does not leave the screen empty."""
    render.rows([], as_json=False, empty="nothing here")
    render.rows([], as_json=True, empty="nothing here")
    assert capsys.readouterr().out == "nothing here\n[]\n"


def test_rows_do_not_wrap_in_a_pipe(capsys):
    """A table row stays on one line without a terminal."""
    render.rows([Line("t" * 90, POSITION, 1), Line("u" * 90, POSITION, 2)], as_json=False, empty="")
    assert any("t" * 90 in line and "binlog.000001:4" in line for line in capsys.readouterr().out.splitlines())


def test_a_long_value_is_truncated_in_a_table_and_complete_in_json(capsys):
    """Long statements and documents do not break a table."""
    long = Line("x\n" + "y" * 200, POSITION, 1)
    render.rows([long], as_json=False, empty="")
    assert "x " + "y" * 97 + "…" in capsys.readouterr().out
    render.rows([long], as_json=True, empty="")
    assert json.loads(capsys.readouterr().out)[0]["table"] == long.table


def test_an_error_goes_to_stderr_with_facts_and_hint(capsys):
    """Markup in a message is text."""
    render.print_error(LakehouseError("no [table]", hint="make it", path="x"), debug=False)
    shown = capsys.readouterr()
    assert shown.err == "error: no [table] (path=x)\nhint: make it\n"
    assert shown.out == ""


@pytest.fixture(autouse=True)
def own_log():
    """`showing_run` configures logging for the process: restore it."""
    root = logging.getLogger("dmdelta")
    before = (root.handlers[:], root.level, root.propagate)
    yield
    root.handlers[:], root.level, root.propagate = before


class Terminal(io.StringIO):
    """A stream that pretends to be a terminal."""

    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """The terminal output. Not a fixture: pytest replaces stdout after the setup."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


PROGRESS = Progress(2.5, 3, {"one": "1/binlog.000001:4"}, 1200, {"shop.orders": 1200})


def test_a_pipe_gets_json_lines(capsys):
    """Each report and the summary are one line each."""
    with progress.showing_run(StopRequest()) as output:
        output.report(PROGRESS)
    progress.print_summary(RunSummary(PROGRESS, stopped=False))
    first, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["progress"]["tables"] == {"shop.orders": 1200}
    assert (last["idle"], last["summary"]["stopped"]) == (False, False)


def test_a_terminal_gets_a_summary_for_people(monkeypatch):
    """What landed, what was applied and how it ended."""
    terminal = on_terminal(monkeypatch)
    with progress.showing_run(StopRequest()) as output:
        output.report(PROGRESS)
    progress.print_summary(RunSummary(PROGRESS, stopped=True))
    shown = terminal.getvalue()
    assert "1,200 row changes applied" in shown
    assert "shop.orders" in shown
    assert "stopped" in shown


def test_a_terminal_shows_how_far_a_load_is(monkeypatch):
    """Chunks, rows, rate and the time left of each table."""
    terminal = on_terminal(monkeypatch)
    loads = {"shop.orders": TableLoad(3, 8, 150_000, 400_000, 25_000.0, 10.0), "shop.tiny": TableLoad(1, 1, 4, 4)}
    progress.print_summary(RunSummary(replace(PROGRESS, loads=loads), stopped=True))
    shown = terminal.getvalue()
    for text in ("3 of 8", "150,000 of 400,000", "25,000", "10 s", "shop.tiny", "loaded"):
        assert text in shown


def test_an_idle_run_reports_no_new_changes(monkeypatch):
    """A second run over the same log has no new changes."""
    terminal = on_terminal(monkeypatch)
    progress.print_summary(RunSummary(Progress(1.0, 0, {}, 0, {}), stopped=False))
    assert "no new changes" in terminal.getvalue()


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_terminal_shows_what_a_command_does_and_stdout_gets_the_results(monkeypatch, stream):
    """A pipe gets nothing but the results."""
    out, err = stream(), stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    with render.working("starting Spark") as shown:
        shown.stage("comparing shop.[b]orders")
        shown.show_line("shop.[b]orders: same")
        shown.show_line("shop.lines: differs")
    assert out.getvalue() == "shop.[b]orders: same\nshop.lines: differs\n"
    told = err.getvalue()
    if stream is Terminal:
        assert 0 <= told.find("starting Spark") < told.find("comparing shop.[b]orders")
    else:
        assert told == ""
