"""The validator's table: it has the state of the last flush, however often the state was flushed."""

from datetime import datetime, timezone

import pytest

from dmdelta.engine.validation import store as validator_store
from dmdelta.engine.validation.store import VALIDATOR, RowError, ValidatorProgress, ValidatorStore, read_errors
from dmdelta.errors import CommitConflict, LakehouseError
from dmdelta.lakehouse.metadata_table import TaskMetadata
from dmdelta.model.position import Position
from dmdelta.quality.pending import ErrorState, PendingRow
from dmdelta.quality.reconcile import Kind
from dmdelta.quality.row_keys import RowKey

SINCE = datetime(2026, 11, 28, tzinfo=timezone.utc)
T = ("shop", "t")
EVERY = 3


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(validator_store, "COMPACT_EVERY", EVERY)


def at(offset):
    return Position(1, "binlog.000001", offset)


def pending(*keys, offset=4):
    return {(T, key): PendingRow(RowKey(key, (key,)), Kind.DIFFERENT, SINCE, at(offset)) for key in keys}


def opened(spark, lakehouse, source="one"):
    store = ValidatorStore(spark, lakehouse, "shop", source)
    return store, *store.open()


def stored(spark, lakehouse, source="one"):
    """The rows of a source, by their entry."""
    rows = spark.table(VALIDATOR.place(lakehouse, "shop")).where(f"id = '{source}'").collect()
    return sorted((row.entry, row.row_key, row.state or "") for row in rows)


def test_rows_of_old_flushes_are_removed(spark, lakehouse):
    """A flush at times writes all pending rows and removes earlier ones; errors and other sources' rows stay."""
    other, _, _ = opened(spark, lakehouse, "two")
    other.flush(ValidatorProgress(at(9)), pending("9"), [])
    store, _, _ = opened(spark, lakehouse)
    error = RowError("e", "one", *T, "7", Kind.MISSING, ErrorState.NEW, SINCE)
    store.flush(ValidatorProgress(at(100)), pending("1", "2"), [error])
    store.flush(ValidatorProgress(at(200)), pending("1"), [])
    store, progress, rows = opened(spark, lakehouse)  # short runs count their flushes together
    assert (progress.position, rows) == (at(200), pending("1"))
    store.flush(ValidatorProgress(at(300)), pending("1"), [])
    assert stored(spark, lakehouse) == [("error", "7", "new"), ("pending", "1", "pending"), ("progress", "", "")]
    assert stored(spark, lakehouse, "two") == [("pending", "9", "pending"), ("progress", "", "")]
    for number in range(4, 4 * EVERY + 1):
        store.flush(ValidatorProgress(at(100 * number)), pending("1", str(number)), [])
        store.publish(ValidatorProgress(at(100 * number), trouble="away"))
    assert len(stored(spark, lakehouse)) == len([1, "settled", 12, "progress", "published", "error"])
    _, progress, rows = opened(spark, lakehouse)
    assert (progress.position, rows) == (at(1200), pending("1", "12"))
    assert [error.key for error in read_errors(VALIDATOR.of(spark, lakehouse, "shop"))] == ["7"]


@pytest.mark.parametrize("failing", ["delete", "compact"])
def test_a_flush_that_is_killed_before_the_removal_loses_nothing(spark, lakehouse, monkeypatch, failing):
    """The rows of all pending rows are committed first; the next removal catches up."""
    store, _, _ = opened(spark, lakehouse)
    store.flush(ValidatorProgress(at(100)), pending("1", "2", "3"), [])
    store.flush(ValidatorProgress(at(200)), pending("1", "2"), [])

    def killed(*_):
        raise LakehouseError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(TaskMetadata, failing, killed)
        with pytest.raises(LakehouseError, match="killed"):
            store.flush(ValidatorProgress(at(300)), pending("1"), [])
    store, progress, rows = opened(spark, lakehouse)
    assert (progress.position, rows) == (at(300), pending("1"))
    for number in range(4, 2 * EVERY + 1):
        store.flush(ValidatorProgress(at(100 * number)), pending("1"), [])
    assert stored(spark, lakehouse) == [("pending", "1", "pending"), ("progress", "", "")]


def test_another_writer_only_delays_the_removal(spark, lakehouse, monkeypatch):
    """The flush has succeeded."""
    store, _, _ = opened(spark, lakehouse)

    def conflicting(*_):
        raise CommitConflict("another writer was faster")

    monkeypatch.setattr(TaskMetadata, "delete", conflicting)
    for number in range(1, EVERY + 1):
        store.flush(ValidatorProgress(at(100 * number)), pending("1"), [])
    _, progress, rows = opened(spark, lakehouse)
    assert (progress.position, rows) == (at(300), pending("1"))


def test_rows_of_an_older_version_are_removed(spark, lakehouse):
    """They have no number of a flush."""
    table = VALIDATOR.of(spark, lakehouse, "shop")
    table.create()
    common = {"id": "one", "schema_name": "", "table_name": "", "row_key": "", "updated_at": SINCE}
    table.append([{**common, "entry": "progress", "progress": ValidatorProgress(at(50)).to_json()}])
    store, progress, _ = opened(spark, lakehouse)
    assert progress.position == at(50)
    for number in range(1, EVERY + 1):
        store.flush(ValidatorProgress(at(100 * number)), {}, [])
    assert stored(spark, lakehouse) == [("progress", "", "")]
