"""A made-up report of a busy day, for tests of the page."""

import math
from datetime import datetime, timedelta, timezone

from dmdelta.engine.telemetry.task_status import Origin, SourceStatus, TableStatus, TaskStatus
from dmdelta.report.facts import (
    Checks,
    ChecksRun,
    FailedCheck,
    Pace,
    Report,
    RowsLanded,
    SafeRange,
    SchemaChange,
    TableActivity,
    Window,
)
from dmdelta.report.time_buckets import stretches_of

UNTIL = datetime(2026, 11, 22, 14, 5, 9, tzinfo=timezone.utc)
NASTY = "<script>alert('x')</script>&\"`"
TABLES = (
    "orders",
    "order_items",
    "events",
    "inventory",
    "customers",
    NASTY,
    "a_table_whose_name_is_as_long_as_names_get",
)


def busy_report() -> Report:
    """Twenty-four hours of a shop with two servers: load during the day, a failing check, a stop at noon."""
    window = Window(UNTIL - timedelta(hours=24), UNTIL, timedelta(hours=24))
    starts = stretches_of(window.since, window.until).starts
    return Report(
        status=_status(),
        made_at=UNTIL + timedelta(seconds=20),
        version="0.1.0",
        window=window,
        paces=tuple(_pace(number, at) for number, at in enumerate(starts) if number % 16 != 11),
        rows=tuple(_rows(number, at) for number, at in enumerate(starts)),
        tables=tuple(_table(number, name) for number, name in enumerate(TABLES)),
        table_count=31,
        schema_changes=(
            SchemaChange(
                starts[30],
                "shop-mysql",
                "shop.orders",
                "1/binlog.000042:8812",
                "ALTER TABLE orders ADD COLUMN note VARCHAR(80) DEFAULT '…'",
            ),
            SchemaChange(
                starts[12], "shop-mariadb", f"shop.{NASTY}", "1/binlog.000007:190", f"CREATE TABLE `{NASTY}` (id INT)"
            ),
        ),
        schema_change_count=2,
        safe_ranges=(
            SafeRange("shop-mysql", "1/binlog.000041:4", "1/binlog.000041:99120", starts[20], starts[22], over=True),
        ),
        checks=Checks(
            runs=tuple(ChecksRun(at, 12 - (number % 9 == 4), int(number % 9 == 4)) for number, at in enumerate(starts)),
            failed=(
                FailedCheck(
                    at=starts[40],
                    table="shop.orders",
                    expectation="expect_column_values_to_not_be_null(total)",
                    unexpected=3,
                    evaluated=18_220,
                    on_failure="warn",
                    scope="replay",
                    begin="2/b:4",
                    end="2/b:9",
                ),
            ),
        ),
    )


def _status() -> TaskStatus:
    heard = UNTIL + timedelta(seconds=19)
    sources = tuple(
        SourceStatus(
            source_id=name,
            relay="streaming",
            relay_at=heard,
            server_at=f"{file}:99120",
            relayed_to=f"1/{file}:99120",
            landed_to=f"1/{file}:98200",
            newest_change=UNTIL,
            applied_to=f"1/{file}:97110",
            exit_point=None,
            flushed_at=UNTIL,
            flushed_because="interval",
        )
        for name, file in (("shop-mysql", "binlog.000042"), ("shop-mariadb", "mariadb-bin.000007"))
    )
    tables = (
        TableStatus(
            source_id="shop-mysql",
            table="shop.orders",
            applied_to="1/binlog.000042:97110",
            delta_version=210,
            flushed_at=UNTIL,
        ),
    )
    return TaskStatus(
        task="shop",
        origin=Origin.LAKEHOUSE,
        at=UNTIL,
        state="running",
        state_at=UNTIL - timedelta(hours=30),
        process="host:1",
        error=None,
        hint=None,
        sources=sources,
        tables=tables,
    )


def _pace(number: int, at: datetime) -> Pace:
    load = 1 + math.sin(number / 9) ** 2
    lag = 2.1 * load + (9 if number == 20 else 0)
    return Pace(at, 90, 1.1 * load, 1.9 * load, 0.4 * lag, lag)


def _rows(number: int, at: datetime) -> RowsLanded:
    load = 40_000 * (1 + math.sin(number / 9) ** 2)
    return RowsLanded(at, {"insert": int(load), "update": int(load * 0.6), "delete": int(load * 0.2)})


def _table(number: int, name: str) -> TableActivity:
    rows = {"insert": 900_000 // (number + 1), "update": 500_000 // (number + 1), "delete": 90_000 // (number + 2)}
    return TableActivity("shop-mysql", f"shop.{name}", rows, UNTIL, UNTIL, 2.4 + number, behind=number == 4)
