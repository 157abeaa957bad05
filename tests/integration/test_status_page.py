"""The status page in a real browser: content, refresh, filter and sort, both schemes, no external request."""

import time
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.telemetry.status_server import StatusSite, serving_site
from dmdelta.engine.telemetry.task_status import Attention, Mode, SnapshotProgress
from tests.support.browser import browsing
from tests.support.servers.server import free_port
from tests.support.statuses import source, table, task

TABLES = (
    table("shop.customers"),
    table("shop.orders", attention=Attention.STOPPED, reason="cannot follow <b>DDL</b>", hint="dmdelta binlog skip"),
    table("shop.lines", attention=Attention.LATE, lag_seconds=95.0),
    table(
        "shop.big",
        attention=Attention.SNAPSHOT,
        snapshot=SnapshotProgress(chunks=3, all_chunks=10, rows=30, all_rows=100, seconds_left=90.0),
    ),
)
SOURCE = {
    "mode": Mode.SAFE,
    "safe_until": "1/binlog.000042:120000",
    "safe_tables": 2,
    "sunk_to": "1/binlog.000042:90001",
    "sink_lag_bytes": 8199,
    "sink_lacks": ("shop.lines",),
    "validated_to": "1/binlog.000042:80000",
    "validator_pending": 3,
    "validator_errors": 1,
    "stop_waits_for": ("applying shop.orders", "checkpoint"),
}


@pytest.fixture
def site():
    """The address of a page, and its status, which a test may change."""
    shown, port = SimpleNamespace(status=task([source(**SOURCE)], TABLES)), free_port()
    now = time.time()
    history = {"shop-primary": [(now - 10 * n, n % 7, 100.0 * n) for n in range(60, 0, -1)]}
    with serving_site(
        MetricsConfig(port=port), StatusSite(lambda: shown.status, lambda: history, 10.0, CollectorRegistry())
    ):
        yield f"http://127.0.0.1:{port}/", shown


def names(page):
    return [row.get_attribute("data-table") for row in page.query_selector_all("#tables tr")]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_shows_the_status_and_refreshes(site, width, scheme):
    """On a wide and on a narrow screen; all requests go to the task itself."""
    address, shown = site
    with browsing() as browser:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(address) else complaints.append(request.url))
        page.goto(address)
        page.wait_for_selector("[data-table='shop.orders']")
        text = page.inner_text("main")
        for expected in (
            *("running", "1.3 s", "2.0 KiB", "1,234.5", "safe, 2 tables", "1/binlog.000042:97110"),
            *("1/binlog.000042:120000", "1/binlog.000042:90001", "8.0 KiB behind landed", "errors: 1", "interval"),
            *("Next: dmdelta binlog skip", "cannot follow <b>DDL</b>", "3 of 10 chunks, 2 min left", "2 min behind"),
            "The sink lacks rows that snapshots read from shop.lines",
            "shop-primary: stopping, waits for: applying shop.orders · checkpoint",
        ):
            assert expected in text, (expected, text)
        assert page.title() == "shop: running"
        assert len(page.query_selector_all("polyline")) == 2
        assert names(page) == ["shop.orders", "shop.lines", "shop.big", "shop.customers"]
        filter_and_sort(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shown.status = task([source(lag_seconds=7300.0)], (table("shop.customers"),), state="paused")
        page.wait_for_selector("#state:has-text('paused')", timeout=30_000)
        assert page.title() == "shop: paused"
        assert "2 h 2 min" in page.inner_text("main")
        assert "waits for" not in page.inner_text("main")
        assert names(page) == ["shop.customers"]
        assert complaints == []
        context.close()


def filter_and_sort(page):
    """By name and by state; the second click reverses the order of a column."""
    page.fill("#filter", "BIG")
    assert names(page) == ["shop.big"]
    page.fill("#filter", "stopped")
    assert names(page) == ["shop.orders"]
    page.fill("#filter", "")
    page.click("button:has-text('Table')")
    assert names(page) == ["shop.big", "shop.customers", "shop.lines", "shop.orders"]
    page.click("button:has-text('Table')")
    assert names(page) == ["shop.orders", "shop.lines", "shop.customers", "shop.big"]
    page.click("button:has-text('State')")
