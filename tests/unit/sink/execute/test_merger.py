"""The merger: merged statements, and DM's rewriting in safe mode."""

from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.merger import STATEMENT_CHARACTERS, Style, merged

TB = Shape("tb", "(a,b)", "a=VALUES(a), b=VALUES(b)", "a")
DUMMY = Shape(
    "dummydb.dummytbl",
    "(id, int_value, str_value)",
    "id=VALUES(id), int_value=VALUES(int_value), str_value=VALUES(str_value)",
    "id",
)
BAG = Shape("bag", "(a)", "a=VALUES(a)", "")


def change(act, identity, values=None, *, was=None, sets=None):
    return Change(act, identity, was, values, sets, (identity,), ((1, 0),))


def test_merged_statements():
    """INSERTs, UPDATEs and DELETEs of adjacent rows become one statement each."""
    rows = [("1", "(1,1)"), ("2", "(2,2)")]
    inserts = [(TB, change(Act.INSERT, *row)) for row in rows]
    updates = [(TB, change(Act.UPDATE, *row)) for row in rows]
    deletes = [(TB, change(Act.DELETE, key)) for key, _ in rows]
    assert list(merged([*inserts, *updates, *deletes], Style())) == [
        "INSERT INTO tb (a,b) VALUES (1,1),(2,2)",
        "INSERT INTO tb (a,b) VALUES (1,1),(2,2) ON DUPLICATE KEY UPDATE a=VALUES(a), b=VALUES(b)",
        "DELETE FROM tb WHERE a IN (1,2)",
    ]


def test_updates_without_upsert():
    """Each update has its own assignments; DELETE+INSERT stays a DELETE and an INSERT."""
    shape = TB._replace(assigned="")
    work = [
        (shape, change(Act.UPDATE, "1", "(1,1)", sets="a=1, b=1")),
        (shape, change(Act.UPDATE, "2", "(2,2)", sets="a=2, b=2")),
        (shape, change(Act.UPDATE, "3", "(3,3)")),
    ]
    assert list(merged(work, Style())) == [
        "UPDATE tb SET a=1, b=1 WHERE a = 1",
        "UPDATE tb SET a=2, b=2 WHERE a = 2",
        "DELETE FROM tb WHERE a IN (3)",
        "INSERT INTO tb (a,b) VALUES (3,3)",
    ]


def test_rewriting_in_safe_mode():
    """In safe mode INSERT is REPLACE, and UPDATE is DELETE by the old key and REPLACE of the new row."""
    work = [
        (DUMMY, change(Act.INSERT, "123", "(123, 999, 'abc')")),
        (DUMMY, change(Act.UPDATE, "123", "(123, 888999, 'abc')")),
        (DUMMY, change(Act.UPDATE, "999", "(999, 888888, 'abc888')", was="888", sets="id = 999")),
    ]
    assert list(merged(work, Style(safe=True, multiple_rows=False))) == [
        "REPLACE INTO dummydb.dummytbl (id, int_value, str_value) VALUES (123, 999, 'abc')",
        "DELETE FROM dummydb.dummytbl WHERE id IN (123)",
        "REPLACE INTO dummydb.dummytbl (id, int_value, str_value) VALUES (123, 888999, 'abc')",
        "DELETE FROM dummydb.dummytbl WHERE id IN (888)",
        "REPLACE INTO dummydb.dummytbl (id, int_value, str_value) VALUES (999, 888888, 'abc888')",
    ]


def test_safe_mode_merges_rows_that_keep_their_key():
    """Adjacent updates become one DELETE and one REPLACE; a key change stays separate, because its order matters."""
    keep = [(TB, change(Act.UPDATE, key, f"({key},0)")) for key in ("1", "2")]
    move = [(TB, change(Act.UPDATE, "4", "(4,0)", was="3")), (TB, change(Act.UPDATE, "5", "(5,0)", was="4"))]
    assert list(merged([*keep, *move], Style(safe=True))) == [
        "DELETE FROM tb WHERE a IN (1,2)",
        "REPLACE INTO tb (a,b) VALUES (1,0),(2,0)",
        "DELETE FROM tb WHERE a IN (3)",
        "REPLACE INTO tb (a,b) VALUES (4,0)",
        "DELETE FROM tb WHERE a IN (4)",
        "REPLACE INTO tb (a,b) VALUES (5,0)",
    ]


def test_safe_mode_where_foreign_keys_are_checked():
    """REPLACE does not cascade; a deleted row or a changed key cascades as at the source."""
    work = [
        (TB, change(Act.INSERT, "1", "(1,1)")),
        (TB, change(Act.UPDATE, "1", "(1,2)")),
        (TB, change(Act.UPDATE, "2", "(2,1)", was="1", sets="a=2, b=1")),
        (TB, change(Act.DELETE, "2")),
    ]
    off, on = "SET foreign_key_checks = 0", "SET foreign_key_checks = 1"
    assert list(merged(work, Style(safe=True, checked=True))) == [
        *(off, "REPLACE INTO tb (a,b) VALUES (1,1)", on),
        *(off, "DELETE FROM tb WHERE a IN (1)", "REPLACE INTO tb (a,b) VALUES (1,2)", on),
        *(off, "DELETE FROM tb WHERE a IN (2)", on, "UPDATE IGNORE tb SET a=2, b=1 WHERE a = 1"),
        *(off, "DELETE FROM tb WHERE a IN (1)", "REPLACE INTO tb (a,b) VALUES (2,1)", on),
        *("DELETE IGNORE FROM tb WHERE a IN (2)", off, "DELETE FROM tb WHERE a IN (2)", on),
    ]
    assert list(merged(work[:1], Style(checked=True))) == ["INSERT INTO tb (a,b) VALUES (1,1)"]


def test_without_multiple_rows():
    """Each change is its own statement, an update a plain UPDATE."""
    work = [(TB, change(Act.INSERT, "1", "(1,1)")), (TB, change(Act.UPDATE, "1", "(1,2)", sets="a=1, b=2"))]
    assert list(merged(work, Style(multiple_rows=False))) == [
        "INSERT INTO tb (a,b) VALUES (1,1)",
        "UPDATE tb SET a=1, b=2 WHERE a = 1",
    ]


def test_key_change_is_an_update():
    """A row whose key changes is identified by the old key."""
    moved = change(Act.UPDATE, "2", "(2,1)", was="1", sets="a=2, b=1")
    assert list(merged([(TB, moved)], Style())) == ["UPDATE tb SET a=2, b=1 WHERE a = 1"]


def test_images_with_some_columns():
    """Columns that are not in the image are not written."""
    work = [
        (TB, change(Act.INSERT, "1", sets="a=1")),
        (TB, change(Act.UPDATE, "1", sets="b=2")),
    ]
    assert list(merged(work, Style())) == ["INSERT INTO tb SET a=1", "UPDATE tb SET b=2 WHERE a = 1"]
    assert next(merged(work, Style(safe=True))) == "REPLACE INTO tb SET a=1"


def test_table_without_a_key():
    """Inserts are merged; updates and deletes identify a row by all its values and change one of equal rows."""
    work = [
        (BAG, change(Act.INSERT, "", "(1)")),
        (BAG, change(Act.INSERT, "", "(1)")),
        (BAG, change(Act.DELETE, "a = 1")),
        (BAG, change(Act.DELETE, "a = 1")),
        (BAG, change(Act.UPDATE, "a = 1", "(2)", sets="a=2")),
    ]
    assert list(merged(work, Style())) == [
        "INSERT INTO bag (a) VALUES (1),(1)",
        "DELETE FROM bag WHERE a = 1 LIMIT 1",
        "DELETE FROM bag WHERE a = 1 LIMIT 1",
        "UPDATE bag SET a=2 WHERE a = 1 LIMIT 1",
    ]


def test_long_statements_are_split():
    """Rows go into another statement when one gets long: servers limit the packet size."""
    row = f"(1,'{'x' * (STATEMENT_CHARACTERS // 2)}')"
    work = [(TB, change(Act.INSERT, str(n), row)) for n in range(4)]
    assert len(list(merged(work, Style()))) == 4
