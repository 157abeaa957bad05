"""The log of a stop: what it waits for."""

import time
from types import SimpleNamespace

import pytest

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.run import stopping
from dmdelta.engine.run.stopping import applying, reporting_stop
from tests.support.logged import logged


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ([], "applying"),
        ([("shop", "orders")], "applying shop.orders"),
        ([("d", f"t{n}") for n in range(7)], "applying d.t0, d.t1, d.t2, d.t3, d.t4 and 2 more"),
    ],
)
def test_tables_in_flight_are_named(tables, text):
    """At most five are named."""
    assert applying(tables) == text


def test_each_change_is_logged_once(monkeypatch):
    """Stages, then the checkpoint; nothing is repeated."""
    monkeypatch.setattr(stopping, "REPORT_SECONDS", 0.01)
    pipeline = SimpleNamespace(
        source_id="s1",
        stop=StopRequest(),
        has_ended=False,
        running_stages=["land", "apply"],
        relaying=SimpleNamespace(is_running=False),
        applying=SimpleNamespace(scheduler=SimpleNamespace(in_flight=[("shop", "orders")])),
        sinking=None,
        validator=None,
    )
    pipeline.stop.request()

    with logged("dmdelta.engine.run.stopping") as told:

        def wait_for(count):
            deadline = time.monotonic() + 30
            while len(told) < count:
                assert time.monotonic() < deadline
                time.sleep(0.01)

        with reporting_stop([pipeline]):
            wait_for(1)
            time.sleep(0.05)
            pipeline.running_stages = []
            wait_for(2)
            pipeline.has_ended = True
        with reporting_stop([pipeline]):
            pass
    assert {(level, message) for level, message, _ in told} == {("INFO", "stopping")}
    waited = [fields["waits_for"]["s1"] for _, _, fields in told]
    assert waited == [("landing", "applying shop.orders", "checkpoint"), ("checkpoint",)]
