"""Logs are JSON lines with PySpark's keys."""

import errno
import io
import json
import logging

import pytest

from dmdelta.errors import LakehouseError
from dmdelta.logging import configure, get_logger, readable


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


@pytest.mark.parametrize("level", ["warning", "error"])
def test_a_foreign_exception_is_logged_with_class_and_stack_only(stream, level):
    """`exc=` fills the key that PySpark's log reader expects. The messages, also those of causes, may quote a row."""
    secret = "jane" + "@doe.example"  # not as a line of code, which a traceback quotes
    try:
        try:
            raise KeyError(secret)
        except KeyError as cause:
            raise ValueError(f"invalid: {secret}") from cause
    except ValueError as error:
        getattr(get_logger("dmdelta.x"), level)("stage failed", exc=error, stage="land")
    (line,) = lines(stream)
    assert secret not in stream.getvalue()
    assert (line["exception"]["class"], line["exception"]["msg"]) == ("ValueError", "")
    assert line["context"] == {"stage": "land"}
    assert any("test_logging" in frame for frame in line["exception"]["stacktrace"])
    assert readable(line).endswith("\n  ValueError")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (LakehouseError("it broke", hint="fix it", table="t"), "it broke (table=t)\n  hint: fix it"),
        (OSError(errno.ENOSPC, "No space left on device", "/lake/x"), "No space left on device: /lake/x"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "Connection refused"),
        (OSError("jane@doe.example"), ""),
    ],
)
def test_the_text_of_a_known_exception_is_logged(stream, error, text):
    """Those of dmdelta and of the operating system quote no row."""
    get_logger("dmdelta.x").error("stage failed", exc=error)
    (line,) = lines(stream)
    assert line["exception"] == {"class": type(error).__name__, "msg": text, "stacktrace": []}


def test_debug_lines_are_omitted_by_default(stream):
    """The level set by `configure` applies; higher levels are logged."""
    log = get_logger("dmdelta.x")
    log.debug("quiet")
    log.warning("loud", text="größer")
    assert [line["msg"] for line in lines(stream)] == ["loud"]
    assert "größer" in stream.getvalue()
