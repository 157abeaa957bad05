"""The HTTP server of a running task: its addresses and headers, and when a task is ready."""

import json
import socket
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.telemetry import status_server
from dmdelta.engine.telemetry.observations import Observations
from dmdelta.engine.telemetry.stats import SourceStats
from dmdelta.engine.telemetry.status_server import StatusSite, plan_readiness, serving_site
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.model.position import Position
from tests.support.servers.server import free_port
from tests.support.statuses import source, task


@contextmanager
def served(status, freshness=10.0):
    """Yields a function that sends a request: code, headers and text of the answer.

    `status` is a status, or a function that returns the current one.
    """
    port, read = free_port(), status if callable(status) else lambda: status
    site = StatusSite(read, lambda: {"shop-primary": [(1.0, 2.0, None)]}, freshness, CollectorRegistry())

    def request(path, method="GET"):
        with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()

    with serving_site(MetricsConfig(port=port), site):
        yield request


def test_every_address_answers():
    """The status is the document of `dmdelta status --json`."""
    status = task([source()])
    with served(status) as request:
        assert TaskStatus.model_validate_json(request("/status.json")[2]) == status
        assert json.loads(request("/history.json")[2]) == {"shop-primary": [[1.0, 2.0, None]]}
        assert request("/healthz")[::2] == (200, "ok\n")
        assert request("/readyz")[::2] == (200, "ready\n")
        assert request("/metrics")[0] == 200
        code, headers, text = request("/")
        assert (code, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert request("/favicon.ico")[0] == 404
        assert request("/../etc/passwd")[0] == 404


def test_a_connection_without_a_request_is_closed(monkeypatch, capsys):
    """Each has a thread. The log has no traceback of it."""
    assert status_server._Quiet.timeout == status_server.IDLE_SECONDS
    monkeypatch.setattr(status_server._Quiet, "timeout", 0.1)
    port = free_port()
    with (
        serving_site(MetricsConfig(port=port), StatusSite(task, dict, 10.0, CollectorRegistry())),
        closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection,
    ):
        assert connection.recv(1) == b""
    assert "TimeoutError" not in capsys.readouterr().err  # other tests may leave threads that write


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_is_read_only(method):
    """For any path."""
    with served(task([source()])) as request:
        assert request("/status.json", method)[0] == 405
        assert request("/metrics", method)[0] == 405


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (task([source(lag_seconds=29.9)]), None),
        (task([source(lag_seconds=30.0)]), "shop-primary: lag 30 s, limit 30 s"),
        (task([source(), source(source_id="b", lag_seconds=99.0)]), "b: lag 99 s, limit 30 s"),
        (task([source(relay="caught up")]), None),
        (task([source(relay="connecting")]), "shop-primary: the relay is connecting"),
        (task([source(relay=None)]), "shop-primary: the relay is not started"),
        (task([source()], state="paused"), "the task is paused"),
        (task([source()], state="retrying"), "the task is retrying"),
        (task([]), "the sources are being opened"),
    ],
)
def test_a_task_is_ready_while_it_streams_with_a_lag_below_three_times_the_target(status, reason):
    """Otherwise the code is 503, and the text has the reasons."""
    assert plan_readiness(status, 10.0).reasons == (() if reason is None else (reason,))
    with served(status) as request:
        code, _, text = request("/readyz")
        assert (code, text) == ((200, "ready\n") if reason is None else (503, f"{reason}\n"))
        assert request("/healthz")[0] == 200


def test_a_target_of_zero_leaves_some_seconds():
    """A task that applies at once still needs them."""
    assert plan_readiness(task([source(lag_seconds=2.5)]), 0.0).is_ready
    assert not plan_readiness(task([source(lag_seconds=3.0)]), 0.0).is_ready


class Frozen:
    """The status of a task whose source continues while applying may be frozen, by a test's clock."""

    def __init__(self, monkeypatch):
        self.now, self.applied = 1000.0, 1000
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now)
        monkeypatch.setattr("dmdelta.engine.telemetry.observations.time", clock)
        self.observations = Observations()

    def pass_second(self, *, is_applying):
        """The source writes; applying follows unless it is frozen."""
        self.now += 1.0
        server = round(self.now)
        self.applied = server if is_applying else self.applied
        positions = {"server": at(server), "applied": at(self.applied)}
        self.observations.see([SourceStats("shop-primary", positions)], self.now)

    def status(self):
        return task([source(lag_seconds=self.observations.lag("shop-primary", at(self.applied)))])


def at(offset):
    return Position(1, "binlog.000001", offset)


def test_a_task_whose_applying_is_frozen_is_not_ready_until_it_has_caught_up(monkeypatch):
    """The lag is measured: 503 from three times the target freshness on, 200 once it is below again."""
    frozen = Frozen(monkeypatch)
    frozen.pass_second(is_applying=True)
    with served(frozen.status) as request:
        assert request("/readyz")[::2] == (200, "ready\n")
        codes = []
        for _ in range(32):
            frozen.pass_second(is_applying=False)
            codes.append(request("/readyz")[0])
        assert codes == [200] * 30 + [503] * 2
        assert request("/readyz")[2] == "shop-primary: lag 31 s, limit 30 s\n"
        frozen.pass_second(is_applying=True)
        assert request("/readyz")[::2] == (200, "ready\n")
