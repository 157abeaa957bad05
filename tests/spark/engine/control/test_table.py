"""The control table: requests are found, whatever version created the table."""

from datetime import datetime, timezone

import pytest

from dmdelta.engine.control.state import Request
from dmdelta.engine.control.table import CONTROL, ControlTable, PendingCommands, Update
from dmdelta.lakehouse.access.spark import metadata_frame
from dmdelta.lakehouse.metadata_table import create_metadata

OLDER = {name: kind for name, kind in CONTROL.columns.items() if name not in ("settings", "answers")}


@pytest.fixture
def table(spark, lakehouse):
    return ControlTable(spark, lakehouse, "t")


def test_the_newest_request_of_each_kind_counts(table):
    """An update does not hide a pause, nor a pause an update; an answer is not a request."""
    update = table.ask_update('{"x": 1}')
    table.answer(Update("another", "{}"), '{"x": 0}')
    assert table.answered(update) is None
    table.ask(Request.PAUSE)
    asked = table.asked()
    assert (asked.request.request, asked.update) == (Request.PAUSE, Update(update, '{"x": 1}'))
    table.answer(asked.update, '{"x": 1}')
    assert table.answered(update).settings == '{"x": 1}'
    assert table.asked() == asked


def test_a_reload_hides_no_other_request(table):
    """A reload is a kind of its own."""
    table.ask(Request.PAUSE)
    assert table.asked().reload is None
    table.ask_reload()
    first = table.asked()
    assert first.request.request is Request.PAUSE
    table.ask_reload()
    assert table.asked().request == first.request
    assert table.asked().reload not in (None, first.reload)


def test_a_table_of_an_older_version_is_read_and_widened(spark, lakehouse, table):
    """It lacks the columns of updates: it has no update request, and the first one adds them."""
    name = lakehouse.metadata("t_control")
    create_metadata(spark, lakehouse, name, OLDER, "t")
    assert table.asked() == PendingCommands()
    assert spark.sql(f"SELECT * FROM {name}").columns == list(OLDER)
    update = table.ask_update("{}")
    assert spark.sql(f"SELECT * FROM {name}").columns == list(CONTROL.columns)
    assert table.asked().update.id == update


def test_an_older_version_continues_with_a_widened_table(spark, lakehouse, table):
    """Its rows lack the new columns; its requests are found."""
    name = lakehouse.metadata("t_control")
    table.ask_update("{}")
    rows = [{"id": "old", "at": datetime.now(timezone.utc), "process": "p", "request": "pause"}]
    metadata_frame(spark, OLDER, rows).writeTo(name).append()
    asked = table.asked()
    assert (asked.request.id, asked.request.request) == ("old", Request.PAUSE)
    assert asked.update.settings == "{}"
