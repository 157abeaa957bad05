"""Table lineage through RENAMEs."""

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
    """The renamings of statements at offsets 100, 200, …, with one bronze row for every table that they name."""
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


def test_lineage_through_renames():
    """The lineage contains every earlier name of a table; a table that was never renamed has one name."""
    planned = renamings("RENAME TABLE log TO audit", "ALTER TABLE audit RENAME TO trail")
    assert names(planned, "trail") == [("log", None, 100), ("audit", 100, 200), ("trail", 200, 9_000)]
    assert names(planned, "audit", log(150)) == [("log", None, 100), ("audit", 100, 150)]
    assert names(planned, "other") == [("other", None, 9_000)]


def test_a_freed_name_starts_after_the_rename():
    """After a RENAME the old name is a new table; at the statement it is still the old table."""
    planned = renamings("RENAME TABLE log TO audit")
    assert names(planned, "log") == [("log", 100, 9_000)]
    assert names(planned, "log", log(100)) == [("log", None, 100)]


def test_swapped_names():
    """Two tables swap their names through a temporary name, once and back."""
    swap = "RENAME TABLE a TO tmp, b TO a, tmp TO b"
    assert names(renamings(swap), "a") == [("b", None, 100), ("a", 100, 9_000)]
    assert names(renamings(swap, swap), "a") == [("a", None, 100), ("b", 100, 200), ("a", 200, 9_000)]


def test_a_snapshot_ends_the_lineage():
    """An ad-hoc snapshot starts a new history; only RENAMEs after it are part of the lineage."""
    planned = renamings("RENAME TABLE log TO audit", "RENAME TABLE audit TO trail")
    assert names(planned, "audit", log(150), lambda *_: log(120)) == [("audit", None, 150)]
    read = {"trail": None, "audit": log(120)}
    found = names(planned, "trail", newest_read=lambda name, _: read[name[1]])
    assert found == [("audit", None, 200), ("trail", 200, 9_000)]


FILES = [FileRows(log(4), 5), FileRows(log(4, 9), 5), FileRows(log(4, 1, epoch=3), 5)]


def test_the_log_after_a_rename_is_one_range():
    """The range starts at the RENAME, in normal mode if there are no earlier changes; a later epoch may repeat some."""
    carried = Beginnings(overlap_until={3: log(50, 1, epoch=3)}, carried=Carried(log(100)))
    assert plan_past(FILES, log(900, 9), carried) == (ReplayRange(log(100), log(900, 9)),)
    assert plan_past(FILES, log(900, 2, epoch=3), carried)[1:] == (
        ReplayRange(log(4, 1, epoch=3), log(50, 1, epoch=3), again=True),
        ReplayRange(log(50, 1, epoch=3), log(900, 2, epoch=3)),
    )


def test_a_rename_after_a_snapshot_is_replayed_in_safe_mode():
    """The log after the RENAME may overlap the snapshot, unless the overlap is known to end before."""
    unknown = Beginnings(carried=Carried(log(100), spans_epochs=True))
    assert plan_past(FILES, log(900, 9), unknown) == (ReplayRange(log(100), log(900, 9), again=True),)
    known = Beginnings(overlap_until={2: log(50)}, carried=Carried(log(100), spans_epochs=True))
    assert plan_past(FILES, log(900, 9), known) == (ReplayRange(log(100), log(900, 9)),)
