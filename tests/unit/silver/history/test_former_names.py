"""Under which names a table had its rows."""

from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply.renames import plan_renamings
from dmdelta.silver.history.former_names import plan_lineage
from dmdelta.silver.history.lineage import Beginnings, Carried, FileRows, ReplayRange, plan_past
from dmdelta.silver.schema.ddl_effects import statement_targets
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents


def log(offset, number=7, epoch=2):
    return Position(epoch, f"binlog.{number:06d}", offset)


def renamings(*statements):
    """Of statements at 100, 200, …, each with a row for every table that it names."""
    tables = {}
    for number, text in enumerate(statements, 1):
        for target in statement_targets(text, "d"):
            event = StructureEvent(log(100 * number), 0, Op.DDL, text)
            tables.setdefault((target.schema, target.table), []).append(event)
    events = [
        TableEvents(*name, {}, found[0].position, found[-1].position, tuple(found)) for name, found in tables.items()
    ]
    return plan_renamings(events, NO_RULES, mariadb=False)


END = log(9_000)


def names(planned, table, end=END, newest_read=lambda _name, _end: None):
    found = plan_lineage(planned, ("d", table), end, newest_read)
    return [(one.name[1], one.begin and one.begin.offset, one.end.offset) for one in found]


def test_rows_are_followed_through_every_name():
    """One RENAME, several, and what stays where it is."""
    planned = renamings("RENAME TABLE log TO audit", "ALTER TABLE audit RENAME TO trail")
    assert names(planned, "trail") == [("log", None, 100), ("audit", 100, 200), ("trail", 200, 9_000)]
    assert names(planned, "audit", log(150)) == [("log", None, 100), ("audit", 100, 150)]
    assert names(planned, "other") == [("other", None, 9_000)]


def test_a_name_that_was_freed_begins_behind_the_statement():
    """A new table of the old name has none of its rows; at the statement itself it is the old one."""
    planned = renamings("RENAME TABLE log TO audit")
    assert names(planned, "log") == [("log", 100, 9_000)]
    assert names(planned, "log", log(100)) == [("log", None, 100)]


def test_two_tables_that_swap_their_names():
    """By way of a third name, in one statement and back again."""
    swap = "RENAME TABLE a TO tmp, b TO a, tmp TO b"
    assert names(renamings(swap), "a") == [("b", None, 100), ("a", 100, 9_000)]
    assert names(renamings(swap, swap), "a") == [("a", None, 100), ("b", 100, 200), ("a", 200, 9_000)]


def test_a_snapshot_ends_the_lineage():
    """What was read again has no past under another name, until it is renamed behind the snapshot."""
    planned = renamings("RENAME TABLE log TO audit", "RENAME TABLE audit TO trail")
    assert names(planned, "audit", log(150), lambda *_: log(120)) == [("audit", None, 150)]
    read = {"trail": None, "audit": log(120)}
    found = names(planned, "trail", newest_read=lambda name, _: read[name[1]])
    assert found == [("audit", None, 200), ("trail", 200, 9_000)]


FILES = [FileRows(log(4), 5), FileRows(log(4, 9), 5), FileRows(log(4, 1, epoch=3), 5)]


def test_the_log_behind_a_statement_is_one_stretch():
    """It begins at the statement, in normal mode if nothing was told before; a later log may tell again."""
    carried = Beginnings(overlap_until={3: log(50, 1, epoch=3)}, carried=Carried(log(100)))
    assert plan_past(FILES, log(900, 9), carried) == (ReplayRange(log(100), log(900, 9)),)
    assert plan_past(FILES, log(900, 2, epoch=3), carried)[1:] == (
        ReplayRange(log(4, 1, epoch=3), log(50, 1, epoch=3), again=True),
        ReplayRange(log(50, 1, epoch=3), log(900, 2, epoch=3)),
    )


def test_what_a_snapshot_may_have_told_is_told_again():
    """A statement behind a snapshot, in a log whose overlap with it nobody remembers."""
    unknown = Beginnings(carried=Carried(log(100), told=True))
    assert plan_past(FILES, log(900, 9), unknown) == (ReplayRange(log(100), log(900, 9), again=True),)
    known = Beginnings(overlap_until={2: log(50)}, carried=Carried(log(100), told=True))
    assert plan_past(FILES, log(900, 9), known) == (ReplayRange(log(100), log(900, 9)),)
