"""Takes the screenshot docs/status-page.png of a made-up task: `python -m tests.support.record_status_page`."""

import math
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.telemetry.status_server import StatusSite, serving_site
from dmdelta.engine.telemetry.task_status import Attention, SnapshotProgress
from tests.support.browser import browsing
from tests.support.servers.server import free_port
from tests.support.statuses import source, table, task

TARGET = Path(__file__).resolve().parents[2] / "docs" / "status-page.png"
MOST_BYTES = 200_000
WIDTH = 1100
REASON = "silver cannot follow ALTER TABLE orders ADD c TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)"


def main() -> None:
    now, port = time.time(), free_port()
    samples = [
        (now - 10 * n, 2 + math.sin(n / 20) + (4 if 100 < n < 108 else 0), 1300 + 300 * math.sin(n / 13) ** 3)
        for n in range(360, 0, -1)
    ]
    tables = (
        table("shop.orders", attention=Attention.STOPPED, reason=REASON, hint="dmdelta binlog skip SPEC --position …"),
        table(
            "shop.events",
            attention=Attention.SNAPSHOT,
            snapshot=SnapshotProgress(chunks=31, all_chunks=80, rows=3_100_000, all_rows=8_000_000, seconds_left=700.0),
        ),
        *(table(f"shop.{name}") for name in ("customers", "inventory", "order_items", "products")),
    )
    status = task([source(validated_to="1/binlog.000042:96000", validator_pending=0, validator_errors=0)], tables)
    site = StatusSite(lambda: status, lambda: {"shop-primary": samples}, 10.0, CollectorRegistry())
    with serving_site(MetricsConfig(port=port), site), browsing() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("[data-table='shop.orders']")
        page.screenshot(path=TARGET, full_page=True)
    assert TARGET.stat().st_size < MOST_BYTES
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
