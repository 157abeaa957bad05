"""Keys as SQL literals of both sides."""

import pytest

from dmdelta.model.schema import Column
from dmdelta.quality.row_keys import RowKey, is_askable, part_columns, silver_among, source_among

ID, NAME = Column("id", "int"), Column("na`me", "varchar", length=20)
CODE, DAY = Column("code", "varbinary", length=9), Column("day", "datetime")


def test_rows_of_one_key_column():
    """The condition compares the column itself, so that an index or file statistics serve it."""
    keys = [RowKey("1", ("1",)), RowKey("-2", ("-2",))]
    assert source_among([ID], keys) == "`id` IN (1, -2)"
    assert silver_among([ID], "k", keys) == "`id` IN (CAST('1' AS INT), CAST('-2' AS INT))"


def test_rows_of_several_key_columns():
    """Each row by all of its key values; silver's files are skipped by the first column."""
    keys = [RowKey("1|2:it", ("1", "it")), RowKey("1|1:'", ("1", "'"))]
    assert source_among([ID, NAME], keys) == (
        "(`id` = 1 AND `na``me` = _utf8mb4 X'6974') OR (`id` = 1 AND `na``me` = _utf8mb4 X'27')"
    )
    assert silver_among([ID, NAME], "k", keys) == r"`id` IN (CAST('1' AS INT)) AND k IN ('1|2:it', '1|1:\'')"


def test_bytes_and_times():
    """Bytes are hexadecimal, times are quoted."""
    assert part_columns([CODE, DAY]) == ["hex(`code`)", "CAST(`day` AS STRING)"]
    keys = [RowKey("x", ("00FF", "2026-11-22 08:00:00.5"))]
    assert source_among([CODE, DAY], keys) == "(`code` = X'00FF' AND `day` = '2026-11-22 08:00:00.5')"
    assert silver_among([CODE, DAY], "k", keys) == "`code` IN (X'00FF') AND k IN ('x')"


@pytest.mark.parametrize(("types", "askable"), [(["int", "char"], True), (["double"], False), ([], False)])
def test_keys_by_which_rows_can_be_looked_up(types, askable):
    """The SQL literal of a float is not exact."""
    assert is_askable([Column(f"c{number}", kind) for number, kind in enumerate(types)]) is askable
