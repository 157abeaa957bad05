"""Logs are JSON lines with PySpark's keys."""

import io
import json
import logging

import pytest

from dmdelta.logging import configure, get_logger


@pytest.fixture
def stream():
    """The lines that dmdelta logs during a test."""
    root = logging.getLogger("dmdelta")
    before = (root.handlers[:], root.level, root.propagate)
    target = io.StringIO()
    configure(target)
    yield target
    root.handlers[:], root.level, root.propagate = before


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_constant_text_and_fields(stream):
    """The keyword arguments of a call become the line's context."""
    get_logger("dmdelta.bronze").info("batch landed", batch=7, rows=1200)
    (line,) = lines(stream)
    assert set(line) == {"ts", "level", "logger", "msg", "context"}
    assert (line["level"], line["logger"], line["msg"]) == ("INFO", "dmdelta.bronze", "batch landed")
    assert line["context"] == {"batch": 7, "rows": 1200}
    assert line["ts"].endswith("+00:00")


def test_an_exception_is_logged_with_class_message_and_stack(stream):
    """`exc=` fills the key that PySpark's log reader expects."""
    try:
        raise ValueError("no")
    except ValueError as error:
        get_logger("dmdelta.x").error("stage failed", exc=error, stage="land")
    (line,) = lines(stream)
    assert (line["exception"]["class"], line["exception"]["msg"]) == ("ValueError", "no")
    assert any("test_logging" in frame for frame in line["exception"]["stacktrace"])


def test_debug_lines_are_omitted_by_default(stream):
    """The level set by `configure` applies; higher levels are logged."""
    log = get_logger("dmdelta.x")
    log.debug("quiet")
    log.warning("loud", text="größer")
    assert [line["msg"] for line in lines(stream)] == ["loud"]
    assert "größer" in stream.getvalue()
