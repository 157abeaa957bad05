"""How long tables keep their history, by kind and by the properties that a user has set."""

from datetime import timedelta

import pytest

from dmdelta.lakehouse.access.log_cleanup import LOG_RETENTION
from dmdelta.lakehouse.retention import DELTA, FILE_RETENTION, FREQUENT, SILVER, silver_retention

LONGER = {FILE_RETENTION: "interval 8 days", LOG_RETENTION: "interval 10 days"}


@pytest.mark.parametrize("retention", [DELTA, FREQUENT, SILVER])
def test_the_log_reaches_back_to_what_the_last_vacuum_has_removed(retention):
    """Otherwise each VACUUM has to list all files; Delta refuses a log retention that is shorter than `files`."""
    assert retention.log > retention.files + retention.vacuum


@pytest.mark.parametrize("retention", [DELTA, FREQUENT, SILVER])
def test_a_new_table_has_the_retention(retention):
    assert replaced(retention.changed_by(retention.properties)) == replaced(retention)


def replaced(retention):
    return (retention.log, retention.files)


@pytest.mark.parametrize(
    ("properties", "log", "files"),
    [
        ({}, SILVER.log, timedelta(days=7)),
        (LONGER, timedelta(days=10), timedelta(days=8)),
        ({FILE_RETENTION: "INTERVAL 90 minutes"}, SILVER.log, timedelta(minutes=90)),
        ({FILE_RETENTION: "1 week 2 hours"}, SILVER.log, timedelta(days=7, hours=2)),
        ({LOG_RETENTION: "interval 5 seconds"}, timedelta(seconds=5), timedelta(days=7)),
        ({FILE_RETENTION: "interval 0 hours"}, SILVER.log, timedelta(0)),
        ({LOG_RETENTION: "a fortnight"}, timedelta(days=36_525), timedelta(days=7)),
    ],
)
def test_the_tables_properties_win(properties, log, files):
    found = SILVER.changed_by(properties)
    assert (found.log, found.files) == (log, files)
    assert found.vacuum == (SILVER.vacuum if files < DELTA.files else DELTA.vacuum)


def test_silver_elsewhere_keeps_deltas_retention(monkeypatch, tmp_path):
    """Views in a catalog pin versions."""
    assert silver_retention(None, f"delta.`{tmp_path}/silver/shop/orders`") == SILVER
    assert silver_retention(None, "main.shop.orders") == DELTA
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    assert silver_retention(None, f"delta.`{tmp_path}/silver/shop/orders`") == DELTA
