"""Errors survive pickling and the transfer through Spark, and contain a hint."""

import errno
import os
import pickle

import pytest

from dmdelta.errors import CorruptBinlog, DmdeltaError, Retryable, StageFailed, all_errors, as_ours, from_wire, to_wire

EXIT_CODES = {
    "ConfigError": 2,
    "SourceError": 3,
    "StructureChanged": 3,
    "ServerChanged": 3,
    "SourceUnavailable": 3,
    "PositionLost": 3,
    "CorruptBinlog": 3,
    "UnsupportedEvent": 3,
    "SchemaError": 4,
    "UnknownSchema": 4,
    "UnsupportedSchemaChange": 4,
    "LakehouseError": 5,
    "CommitConflict": 5,
    "ForeignTable": 5,
    "Fenced": 5,
    "HeldByCommand": 5,
    "UnsupportedTable": 5,
    "QualityError": 6,
    "NotLanded": 6,
    "NotReadable": 6,
    "SinkError": 7,
    "TargetUnavailable": 7,
    "StageFailed": 1,
}


@pytest.mark.parametrize("name", EXIT_CODES)
def test_every_error_survives_pickling_and_the_wire(name):
    """Class, message, hint and context are unchanged."""
    error = all_errors()[name]("it broke: {x}:end", hint="fix it", path="a/b", offset=7)
    for arrived in (pickle.loads(pickle.dumps(error)), from_wire(f"Traceback … {to_wire(error)} at org.apache")):  # noqa: S301
        assert type(arrived) is type(error)
        assert (arrived.message, arrived.hint, arrived.context) == (error.message, error.hint, error.context)


@pytest.mark.parametrize("name", EXIT_CODES)
def test_each_error_class_has_its_exit_code(name):
    """The exit code tells the operator what kind of error it is."""
    assert all_errors()[name].exit_code == EXIT_CODES[name]


def test_every_error_class_is_tested():
    """A new error class must be added to this test."""
    assert set(all_errors()) == {"DmdeltaError", *EXIT_CODES}


def test_only_transient_errors_are_retryable():
    """The runner retries only these."""
    retryable = {name for name, kind in all_errors().items() if issubclass(kind, Retryable)}
    assert retryable == {"SourceUnavailable", "CommitConflict", "TargetUnavailable"}


def test_an_error_shows_message_facts_and_hint():
    """One readable text: what, where, and the next step."""
    error = CorruptBinlog("checksum differs", hint="fetch the segment again", path="x", offset=4)
    assert str(error) == "checksum differs (path=x, offset=4)\n  hint: fetch the segment again"
    assert str(DmdeltaError("plain")) == "plain"


def test_text_without_a_wire_line_contains_no_error():
    """Text without a wire line gives None; an incomplete line before a complete one is skipped."""
    line = to_wire(CorruptBinlog("checksum differs"))
    assert from_wire("java.lang.NullPointerException") is None
    assert from_wire(line[:-3]) is None
    assert isinstance(from_wire(f'return f"dmdelta-error:{{body}}"\n{line[:-3]}\n{line}'), CorruptBinlog)


def test_an_operating_system_error_has_path_and_hint():
    """A full disk and a missing permission: the file, the reason, the next step."""
    full = as_ours(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/x"), "landing")
    assert (full.exit_code, full.message) == (1, "landing failed: No space left on device: /lake/x")
    assert full.hint.startswith("free disk space")
    assert "write permission" in as_ours(PermissionError(errno.EACCES, "Permission denied"), "landing").hint


def test_an_unexpected_error_has_its_location_and_no_values():
    """The message may quote a row of the source."""
    try:
        int("4711 is a secret")
    except ValueError as unexpected:
        failure = as_ours(unexpected, "applying")
    assert isinstance(failure, StageFailed)
    assert "secret" not in str(failure)
    assert "ValueError at " in failure.message
    assert "test_errors.py:" in failure.message
    assert as_ours(failure, "another") is failure
