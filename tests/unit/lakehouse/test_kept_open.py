"""A table that a thread keeps open between two appends is as new as one that it opens again."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError

from dmdelta.errors import Fenced
from dmdelta.lakehouse.access.delta_rs import local_reads, local_table
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from tests.support.commit_tags import tag

SCHEMA = """{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}"""


@pytest.fixture
def table(tmp_path):
    made = LocalTable("t", tmp_path / "t")
    assert made.create(SCHEMA, {"delta.checkpointInterval": "20"})
    return made


@pytest.fixture
def openings(monkeypatch):
    """A list with the folder of each opening."""
    found, opened = [], LocalTable._open

    def open_table(self):
        found.append(self.folder)
        return opened(self)

    monkeypatch.setattr(LocalTable, "_open", open_table)
    return found


def land(table, number, **whose):
    return table.append_arrow(pa.table({"n": [number]}), tag(number, **whose))


def elsewhere(work):
    """Do it in a thread of its own, which keeps another table open, or none."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def numbers(table):
    return sorted(row["n"] for row in table.rows())


def test_a_thread_opens_its_table_once(table, openings):
    """It is opened again after so many commits, and for another table."""
    last = local_reads.KEPT_COMMITS + 1
    for number in range(1, last - 1):
        land(table, number)
        assert table.file_statistics().num_rows == number
    assert len(openings) == 1
    land(table, last - 1)
    land(table, last)
    assert len(openings) == 2
    other = LocalTable("u", table.folder.with_name("u"))
    other.create(SCHEMA, {})
    land(other, 1)
    land(table, last + 1)
    assert len(openings) == 4
    assert numbers(table) == list(range(1, last + 2))


def test_commits_of_others_are_seen(table):
    """Their transactions, their files, and those that they have removed."""
    land(table, 1)
    elsewhere(lambda: land(table, 2, run="another"))
    with pytest.raises(Fenced):
        land(table, 2)
    land(table, 3)
    assert table.file_statistics().num_rows == 3
    elsewhere(table.compact)
    assert table.file_statistics().num_rows == 1
    land(table, 4)
    assert numbers(table) == [1, 2, 3, 4]


def test_the_log_may_have_been_cleaned(table):
    """Commits since the last access are only in a checkpoint."""
    land(table, 1)
    for number in range(2, 31):
        elsewhere(lambda number=number: land(table, number))
    deltalake.DeltaTable(str(table.folder)).create_checkpoint()
    for version in range(30):
        (table.log / f"{version:020d}.json").unlink()
    land(table, 31)
    assert numbers(table) == list(range(1, 32))


def test_another_table_may_be_in_its_place(table):
    for number in (1, 2):
        land(table, number)
    shutil.rmtree(table.folder)
    assert table.create(SCHEMA, {})
    land(table, 1)
    assert numbers(table) == [1]
    assert table.version() == 1


def test_a_conflict_opens_it_again(table, openings, monkeypatch):
    land(table, 1)
    write, failures = local_table.write_deltalake, [CommitFailedError("another writer was first")]

    def first_fails(*arguments, **settings):
        if failures:
            raise failures.pop()
        return write(*arguments, **settings)

    monkeypatch.setattr(local_table, "write_deltalake", first_fails)
    before = len(openings)
    land(table, 2)
    assert len(openings) == before + 1
    assert numbers(table) == [1, 2]
