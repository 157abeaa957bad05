"""Errors survive pickling and the way through Spark, and say what to do."""

import errno
import os
import pickle

import pytest

from dmdelta.errors import CorruptBinlog, DmdeltaError, Retryable, StageFailed, all_errors, as_ours, from_wire, to_wire

EXIT_CODES = {
    "ConfigError": 2,
    "SourceError": 3,
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
    "QualityError": 6,
    "SinkError": 7,
    "TargetUnavailable": 7,
    "StageFailed": 1,
}


@pytest.mark.parametrize("name", EXIT_CODES)
def test_every_error_survives_pickling_and_the_wire(name):
    """Kind, message, hint and context arrive as they were."""
    error = all_errors()[name]("it broke: {x}:end", hint="mend it", path="a/b", offset=7)
    for arrived in (pickle.loads(pickle.dumps(error)), from_wire(f"Traceback … {to_wire(error)} at org.apache")):  # noqa: S301
        assert type(arrived) is type(error)
        assert (arrived.message, arrived.hint, arrived.context) == (error.message, error.hint, error.context)


@pytest.mark.parametrize("name", EXIT_CODES)
def test_an_error_ends_the_process_with_the_code_of_its_kind(name):
    """The exit code tells the operator who has to act."""
    assert all_errors()[name].exit_code == EXIT_CODES[name]


def test_the_tree_holds_nothing_untested():
    """A new error class has to be listed here."""
    assert set(all_errors()) == {"DmdeltaError", *EXIT_CODES}


def test_only_passing_troubles_are_retryable():
    """The runner repeats these and no others."""
    retryable = {name for name, kind in all_errors().items() if issubclass(kind, Retryable)}
    assert retryable == {"SourceUnavailable", "CommitConflict", "TargetUnavailable"}


def test_an_error_shows_message_facts_and_hint():
    """One text for people: what, where, what next."""
    error = CorruptBinlog("checksum differs", hint="fetch the segment again", path="x", offset=4)
    assert str(error) == "checksum differs (path=x, offset=4)\n  hint: fetch the segment again"
    assert str(DmdeltaError("plain")) == "plain"


def test_foreign_text_holds_no_error():
    """Text without a wire line gives None; a broken line before the whole one is passed over."""
    line = to_wire(CorruptBinlog("checksum differs"))
    assert from_wire("java.lang.NullPointerException") is None
    assert from_wire(line[:-3]) is None
    assert isinstance(from_wire(f'return f"dmdelta-error:{{body}}"\n{line[:-3]}\n{line}'), CorruptBinlog)


def test_what_the_system_refuses_says_where_and_what_to_do():
    """A full disk and a lost right: the file, the reason, the next step."""
    full = as_ours(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/x"), "landing")
    assert (full.exit_code, full.message) == (1, "landing failed: No space left on device: /lake/x")
    assert full.hint.startswith("make room there")
    assert "right to write" in as_ours(PermissionError(errno.EACCES, "Permission denied"), "landing").hint


def test_a_failure_that_nobody_expected_tells_its_place_and_no_value():
    """Its text may quote a row of the source."""
    try:
        int("4711 is a secret")
    except ValueError as unexpected:
        failure = as_ours(unexpected, "applying")
    assert isinstance(failure, StageFailed)
    assert "secret" not in str(failure)
    assert "ValueError at " in failure.message
    assert "test_errors.py:" in failure.message
    assert as_ours(failure, "another") is failure
