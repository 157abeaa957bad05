"""`schema` rows are written where a structure differs, and a reader of bronze still has the right one at every row."""

import io
from dataclasses import replace
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.values.column_types import WireType
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.change import Op
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import TableSchema
from dmdelta.model.segment import Segment
from tests.support.changes import EVERYTHING, Log, names_field, rows_body, table_map_body
from tests.support.golden import cut_at

INT = (WireType.LONG, b"")
TABLES = ("a", "b")
OPTIONS = replace(EVERYTHING, statement_targets=statement_targets)

rows = st.tuples(st.just("rows"), st.sampled_from(TABLES), st.sampled_from(("x", "y", "z")))
xa = st.tuples(st.just("xa"), st.sampled_from(TABLES), st.sampled_from(("x", "y")))
statements = st.tuples(
    st.just("statement"),
    st.sampled_from(
        (
            "ALTER TABLE a ADD INDEX (x)",
            "TRUNCATE TABLE a",
            "RENAME TABLE a TO c, b TO a, c TO b",
            "DROP TABLE b",
            "CREATE TABLE b (x INT)",
            "DROP DATABASE s",
            "ALTER TABLE other.a ADD y INT",
        )
    ),
    st.none(),
)
cuts = st.tuples(st.sampled_from(("segment", "batch", "executors", "epoch")), st.none(), st.none())
logs = st.lists(st.one_of(rows, rows, rows, xa, statements, cuts), max_size=25)


def write(steps):
    """The log of the steps, and how it is cut: by offset, what happens to the recorded structures there."""
    log, ends = Log(), {}
    for number, (kind, what, column) in enumerate(steps):
        if kind == "statement":
            log.query(what)
        elif kind in ("rows", "xa"):
            body = rows_body(b"\0" + (1).to_bytes(4, "little"), 1)
            log.query("BEGIN" if kind == "rows" else f"XA START 'g{number}'")
            log.add(EventType.TABLE_MAP, table_map_body([INT], names_field([column]), name=("s", what)))
            log.add(EventType.WRITE_ROWS, body)
            if kind == "rows":
                log.add(EventType.XID, bytes(8))
            else:
                log.query(f"XA END 'g{number}'").query(f"XA ROLLBACK 'g{number}'")
        elif len(log.data) > 150:  # after the first event
            ends[len(log.data)] = kind
    return log, ends


def decode(steps):
    """(seq, row, op, schema, table, version, ddl, xid) of every row, epoch by epoch."""
    log, ends = write(steps)
    whole = Segment("made", "source", 1, "binlog.000007", 4, len(log.data))
    recorded, epoch, found = RecordedStructures(), 1, []
    for segment, data in cut_at(log.data, whole, [*(end for end in ends if end < len(log.data)), len(log.data)]):
        for batch in decode_segment(
            io.BytesIO(data), replace(segment, epoch=epoch), replace(OPTIONS, recorded=recorded)
        ):
            for count, seq, first, index in batch.runs:
                shared = batch.shared[index]
                found += [((epoch, seq, first + number), shared) for number in range(count)]
        cut = ends.get(segment.end)
        if cut == "batch":
            recorded = RecordedStructures.from_json(recorded.copy().to_json())
        elif cut == "executors":
            recorded.forget_all()
        elif cut == "epoch":
            epoch += 1
    return found, ends


def in_order(place):
    """Structures are numbered downwards from -1 and come before the other rows of their event."""
    epoch, seq, row = place
    return (epoch, seq, row >= 0, abs(row))


@given(logs)
@example([("rows", "a", "x"), ("rows", "a", "y"), ("rows", "a", "x")])
@example([("rows", "a", "x"), ("statement", "DROP DATABASE s", None), ("rows", "a", "x")])
@example([("xa", "a", "x"), ("segment", None, None), ("rows", "a", "x")])
def test_the_newest_structure_is_in_force_at_every_row(steps):
    """The rows of bronze alone determine it; no statement on the table is between its structure and a row."""
    newest, found = {}, sorted(decode(steps)[0], key=lambda pair: in_order(pair[0]))
    for place, shared in found:
        name = (shared.schema, shared.table)
        if shared.op is Op.SCHEMA:
            assert shared.xid is None
            assert TableSchema.from_json(shared.ddl).version == shared.version
            newest[name] = (place[0], shared.version)
        elif shared.op in (Op.DDL, Op.TRUNCATE):
            newest = {one: kept for one, kept in newest.items() if one != name and (one[0], None) != name}
        elif shared.op is Op.INSERT:
            assert newest[name] == (place[0], shared.version)


@given(logs)
def test_no_structure_is_repeated(steps):
    """Repetitions only follow a statement on the table, a change of the epoch, or tasks that decode in parallel."""
    steps = [step for step in steps if step[0] in ("rows", "segment", "batch")]
    found, _ = decode(steps)
    for table in TABLES:
        structures = [shared.version for _, shared in found if shared.op is Op.SCHEMA and shared.table == table]
        assert all(one != other for one, other in pairwise(structures))
        written = [shared.version for _, shared in found if shared.op is Op.INSERT and shared.table == table]
        changes = [version for number, version in enumerate(written) if not number or written[number - 1] != version]
        assert structures == changes


def test_tables_of_a_snapshot_are_recorded_in_each_segment():
    """A snapshot writes structures into the log, so those of the log follow."""
    steps = [("rows", "a", "x"), ("rows", "b", "x"), ("segment", None, None), ("rows", "a", "x"), ("rows", "b", "x")]
    log, ends = write(steps)
    recorded, found = RecordedStructures(repeated=frozenset({("s", "a")})), []
    for segment, data in cut_at(log.data, log.segment(), [*ends, len(log.data)]):
        options = replace(OPTIONS, recorded=recorded)
        for batch in decode_segment(io.BytesIO(data), segment, options):
            found += [shared.table for shared in batch.shared if shared.op is Op.SCHEMA]
    assert found == ["a", "b", "a"]
