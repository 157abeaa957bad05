"""The validator's loop. Its comparison is replaced."""

from types import SimpleNamespace

import pytest

from dmdelta.engine.control import supervise
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.validation import validator
from dmdelta.engine.validation.validator import ValidatorLoop
from dmdelta.errors import SourceError, SourceUnavailable
from dmdelta.model.retry import Retry

WAIT = 30.0


@pytest.mark.parametrize("pending", [True, False])
def test_a_run_that_ends_does_not_wait_for_a_source_that_does_not_answer(monkeypatch, pending):
    """Whether or not ranges wait for the comparison: the next run resumes. The validator has not failed."""

    def refuse(_):
        raise SourceUnavailable("down", hint="none")

    monkeypatch.setattr(validator, "open_connection", refuse)
    monkeypatch.setattr(ValidatorLoop, "_opened", lambda _: SimpleNamespace(open=lambda: None))
    monkeypatch.setattr(supervise, "AGAIN", Retry(first=0.0))
    ranges, stop = RangeQueue(), StopRequest()
    if pending:
        ranges.append(SimpleNamespace())
    ranges.close()
    loop = ValidatorLoop(None, SimpleNamespace(source_id="s1"), None, None, ranges, None, frozenset)
    loop.start("validate-s1", stop)
    ended = supervise.SupervisedLoop.join(loop, 5.0)
    stop.request()
    assert supervise.SupervisedLoop.join(loop, WAIT)
    assert ended
    assert loop.failure is None


def test_a_validator_that_has_stopped_keeps_no_ranges(monkeypatch):
    """The run continues without it, and its memory does not grow."""

    def refuse(_):
        raise SourceError("no privilege", hint="none")

    monkeypatch.setattr(validator, "open_connection", refuse)
    monkeypatch.setattr(ValidatorLoop, "_opened", lambda _: SimpleNamespace(open=lambda: None))
    ranges = RangeQueue()
    ranges.append(SimpleNamespace())
    loop = ValidatorLoop(None, SimpleNamespace(source_id="s1"), None, None, ranges, None, frozenset)
    loop.start("validate-s1", StopRequest())
    assert supervise.SupervisedLoop.join(loop, WAIT)
    assert isinstance(loop.failure, SourceError)
    ranges.append(SimpleNamespace())
    assert ranges.take(0, 0) is None
