"""Executing slices: changes whose keys say less than those in flight wait for them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dmdelta.sink.execute.slice_executor import SliceExecution
from dmdelta.sink.execute.worker import Mark
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.plan.foreign_keys import ALONE, Connected, Parent, Reference
from dmdelta.sink.plan.table_mapping import plan_table
from dmdelta.sink.plan.target_table import TargetColumn, TargetKey, TargetTable
from dmdelta.sink.read import change_reader
from dmdelta.sink.read.change_reader import Past, left_over, read_changes
from dmdelta.sink.read.columns import rendered
from dmdelta.sink.read.image_query import Rendering
from tests.unit.sink.execute.test_dispatcher import queues_of
from tests.unit.sink.read.test_columns import BY_BOTH, BY_ID, COLUMNS, SCHEMA, XA, XA_PLACES, image, read

WORKERS = 4
INSERTS = [("insert", None, image(key, f"u{key}"), None, None) for key in range(1, 9)]
"""Full images, as MINIMAL and NOBLOB log inserts."""
DELETE = ("delete", image(1, absent=True), None, None, None)
"""As MINIMAL logs it; it is not marked as partial."""
MOVE = ("update", image(1, absent=True), image(1, "moved"), False, None)
"""The images of an update that only together have all columns, so that it is not marked as partial."""
TAKER = ("insert", None, image(9, "u1"), None, None)
"""It takes a unique value that row 1 had."""
UPDATES = [("update", image(key), image(key), False, ["id"]) for key in range(1, 9)]


def shown(message):
    """The keys of changes, and None for a mark."""
    if isinstance(message, Mark):
        return [None]
    return [(change.act.value, change.identity) for _, change in message.work.changes]


@pytest.fixture
def executed(monkeypatch):
    """Executes slices of rows; returns what each worker received."""

    def execute(*slices, keys):
        dispatcher, queues = queues_of(WORKERS, 1, shown)
        execution = SliceExecution(dispatcher, compacts=True, ordered=False)
        for rows in slices:
            table, wanted = read(*rows, keys=keys, partial=rows is UPDATES)
            monkeypatch.setattr(change_reader, "read_images", lambda *_, t=table: SimpleNamespace(toArrow=lambda: t))
            changes = read_changes(None, "bronze", wanted, Past(1, ExecutedEvents()))
            execution.execute([[changes]])
        return [one.done for one in queues]

    return execute


def test_partial_images_of_a_table_with_several_keys(executed):
    """They have no row's keys: workers are drained before them, once, and then one worker has all of the table."""
    received = executed(INSERTS, UPDATES, INSERTS, UPDATES, keys=BY_BOTH)
    assert all(None in done for done in received), "an update must not run before an insert of another worker"
    behind = [done[done.index(None) + 1 :] for done in received]
    (all_of_it,) = [done for done in behind if done]
    assert None not in all_of_it
    kinds = [kind for kind, _ in all_of_it]
    assert kinds == ["update"] * 8 + ["insert"] * 8 + ["update"] * 8


@pytest.mark.parametrize("giver", [DELETE, MOVE], ids=["delete", "update"])
def test_before_images_without_a_key_of_the_table(executed, giver):
    """They do not tell which unique value the row had: a row that takes it is executed after it."""
    received = executed(INSERTS, [giver, TAKER], keys=BY_BOTH)
    assert all(None in done for done in received)
    behind = [done[done.index(None) + 1 :] for done in received]
    assert [done for done in behind if done] == [[(giver[0], "1"), ("insert", "9")]]


def test_before_images_without_other_columns(executed):
    """All keys are known: nothing is drained."""
    received = executed(INSERTS, [DELETE, TAKER], keys=BY_ID)
    assert all(None not in done for done in received)


def test_partial_images_of_a_table_with_one_key(executed):
    """They have the row's key: nothing is drained, and each row's changes have one worker, in order."""
    received = executed(INSERTS, UPDATES, keys=BY_ID)
    for done in received:
        assert None not in done
        for kind, key in done:
            assert kind == "insert" or done.index(("insert", key)) < done.index(("update", key))


def test_rows_of_an_xa_transaction_in_tables_that_depend_on_each_other():
    """With foreign keys, all tables have one order: that of the commit, then of the events, then of the rows."""
    dispatcher, (queue,) = queues_of(1, 1, shown)
    execution = SliceExecution(dispatcher, compacts=True, ordered=True)
    groups = []
    for chosen in (slice(0, 2), slice(2, 4)):
        table, wanted = read(*XA[chosen], places=XA_PLACES[chosen])
        groups.append([left_over(wanted.plan, rendered(table, wanted), Past(1, ExecutedEvents()))])
    execution.execute(groups[::-1])
    assert queue.done == [("insert", "10"), ("insert", "11"), ("update", "11"), ("insert", "12")]


def related(table, keys, *slices, connected=ALONE):
    """What a table that foreign keys connect with others has in some slices of inserts: (seq, id, c)."""
    collated = {**COLUMNS, "c": TargetColumn("c", "varchar", "utf8mb4_0900_ai_ci")}
    schema = replace(SCHEMA, table=table)
    target = TargetTable("d", table, collated, keys)
    plan = plan_table(schema.name, schema, target, foreign_keys=True, connected=connected)
    found = []
    for rows in slices:
        read_rows, _ = read(
            *(("insert", None, image(key, text), None, None) for _, key, text in rows),
            places=[(seq, seq, 0) for seq, _, _ in rows],
        )
        wanted = Rendering(plan, "", frozenset({"insert"}))
        found.append([left_over(plan, rendered(read_rows, wanted), Past(1, ExecutedEvents()))])
    return found


def test_tables_that_foreign_keys_connect_keep_their_order_together():
    """A non-ASCII unique value takes the order by keys from its table, and then from the tables around it, too."""
    dispatcher, queues = queues_of(WORKERS, 1, shown)
    execution = SliceExecution(dispatcher, compacts=True, ordered=True)
    group = Connected("group", referenced=(Reference("d", "parent", ("id",)),))
    parents = related("parent", BY_BOTH, [(1, 1, "a"), (3, 2, "b")], [(5, 3, "é"), (7, 4, "d")], connected=group)
    children = related(
        "child",
        BY_ID,
        [(2, 1, "x"), (4, 2, "x")],
        [(6, 3, "x"), (8, 4, "x")],
        [(9, 5, "x"), (10, 6, "x")],
        connected=Connected("group", parents=(Parent(("id",), Reference("d", "parent", ("id",))),)),
    )
    execution.execute([parents[0], children[0]])
    assert all(None not in one.done for one in queues)
    execution.execute([parents[1], children[1]])
    execution.execute([children[2]])
    (together,) = [done for done in (one.done[one.done.index(None) + 1 :] for one in queues) if done]
    assert together == [("insert", str(key)) for key in (3, 3, 4, 4, 5, 6)]


def test_a_parent_that_is_referenced_by_a_part_of_its_key():
    """The children of a value and all rows of the parent that have it go to one worker."""
    dispatcher, queues = queues_of(WORKERS, 1, shown)
    execution = SliceExecution(dispatcher, compacts=True, ordered=True)
    by_two = (TargetKey("PRIMARY", (("id", None), ("c", None))),)
    group = Connected("group", referenced=(Reference("d", "parent", ("id",)),))
    keys = range(1, 9)
    ((parents,), (children,)) = (
        related("parent", by_two, [(2 * key, key, "p") for key in keys], connected=group),
        related(
            "child",
            BY_ID,
            [(2 * key + 1, key, "x") for key in keys],
            connected=Connected("group", parents=(Parent(("id",), Reference("d", "parent", ("id",))),)),
        ),
    )
    execution.execute([parents, children])
    received = [done for done in (one.done for one in queues) if done]
    assert len(received) > 1
    for done in received:
        for key in keys:
            assert (("insert", f"({key},'p')") in done) is (("insert", str(key)) in done)
