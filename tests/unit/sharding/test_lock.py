"""Which shards a statement waits for, in both modes."""

import pytest

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.sharding import (
    Action,
    Columns,
    Coordination,
    Member,
    Mode,
    Operation,
    Shard,
    Verb,
    Waiting,
    joining,
    operations,
    plan_lock,
)

T = TableSchema(
    "d", "t", (Column("id", "int", nullable=False), Column("v", "int"), Column("w", "varchar", length=80)), ("id",)
)
THERE = Columns({"id": "INT", "v": "INT", "w": "STRING"})
ONE, TWO, THREE = (Shard(source, "d", f"t{number}") for number, source in enumerate(("s1", "s1", "s2"), 1))
TARGET = ("d", "merged")


def altered(actions, before=T):
    (effect,) = statement_effects(f"ALTER TABLE t {actions}", "d", lambda _: before)
    assert isinstance(effect, Altered)
    return effect


def waiting(actions, offset=100, before=T):
    return Waiting(Position(1, "b.000001", offset), f"ALTER TABLE t {actions}", altered(actions, before))


def waits(actions, before=T):
    return Member(before, waiting(actions, before=before))


@pytest.mark.parametrize(
    ("actions", "there", "found"),
    [
        ("ADD a INT", THERE, {Operation(Verb.ADD, "a", type="INT")}),
        ("ADD A INT", Columns({**THERE.types, "a": "INT"}), set()),
        ("ADD a BIGINT", Columns({**THERE.types, "a": "INT"}), {Operation(Verb.RETYPE, "a", type="BIGINT")}),
        ("DROP w", THERE, {Operation(Verb.DROP, "w")}),
        ("DROP w", Columns({"id": "INT", "v": "INT"}), set()),
        ("CHANGE w x VARCHAR(80)", THERE, {Operation(Verb.RENAME, "x", was="w")}),
        ("CHANGE w x VARCHAR(80)", Columns({"id": "INT", "v": "INT", "x": "STRING"}), set()),
        ("MODIFY v BIGINT", THERE, {Operation(Verb.RETYPE, "v", type="BIGINT")}),
        ("MODIFY v BIGINT", Columns({**THERE.types, "v": "BIGINT"}), set()),
        ("CHANGE v n BIGINT", THERE, {Operation(Verb.RENAME, "n", was="v"), Operation(Verb.RETYPE, "n", type="BIGINT")}),
        ("ADD a INT, DROP w", THERE, {Operation(Verb.ADD, "a", type="INT"), Operation(Verb.DROP, "w")}),
        ("ADD INDEX i (v), COMMENT 'x'", THERE, set()),
        ("MODIFY w TEXT", THERE, set()),
        ("ADD a INT", Columns(THERE.types, frozenset({"a"})), set()),
        ("ADD a INT, ADD b INT", Columns(THERE.types, frozenset({"a"})), {Operation(Verb.ADD, "b", type="INT")}),
    ],
)  # fmt: skip
def test_a_statement_is_reduced_to_missing_changes(actions, there, found):
    """A statement is reduced to its changes of the existing columns: none, once another shard's statement has made
    them."""
    effects = statement_effects(f"ALTER TABLE t {actions}", "d", lambda _: T)
    left = [operations(effect, there) for effect in effects if isinstance(effect, Altered)]
    assert set().union(*left) == found


@pytest.mark.parametrize(
    ("actions", "name"),
    [
        ("CHANGE v w VARCHAR(9), CHANGE w v INT", "w"),
        ("DROP w, ADD w INT", "w"),
        ("DROP v, CHANGE w v VARCHAR(80)", "v"),
        ("CHANGE v V INT", None),
        ("CHANGE v n INT, ADD a INT", None),
    ],
)
def test_swapped_column_names_are_ambiguous(actions, name):
    """The columns look the same afterwards, so whether the statement was executed cannot be determined."""
    assert altered(actions).reused_name == name


def test_a_joining_shard_adds_missing_columns():
    """Columns that a wider existing column can hold need no change."""
    more = TableSchema("d", "t", (*T.columns, Column("x", "int")), ("id",))
    assert operations(joining(more, THERE), THERE) == {Operation(Verb.ADD, "x", type="INT")}
    assert operations(joining(T, Columns({"id": "BIGINT", "v": "STRING", "w": "STRING"})), THERE) == set()


def test_pessimistic_waits_for_every_shard():
    """Shards at the statement and past it are ready; a shard that waits with another statement is a conflict."""
    behind = TableSchema("d", "t", (*T.columns, Column("a", "int")), ("id",))
    members = {ONE: waits("ADD a INT"), TWO: Member(T), THREE: Member(behind)}
    lock = plan_lock(ONE, members, THERE, Mode.PESSIMISTIC)
    assert (lock.owner, lock.ready, lock.remain, lock.conflicts) == (ONE, (ONE, THREE), (TWO,), ())
    assert not lock.is_resolved
    lock = plan_lock(ONE, {**members, TWO: waits("ADD b INT")}, THERE, Mode.PESSIMISTIC)
    assert (lock.remain, lock.conflicts) == ((), (TWO,))
    assert plan_lock(ONE, {**members, TWO: waits("ADD COLUMN (a INT)")}, THERE, Mode.PESSIMISTIC).is_resolved
    assert not plan_lock(ONE, {**members, TWO: Member(None)}, THERE, Mode.PESSIMISTIC).is_resolved


@pytest.mark.parametrize("actions", ["ADD a INT", "DROP w", "CHANGE w x VARCHAR(80)", "MODIFY v BIGINT"])
def test_optimistic_continues_at_once(actions):
    """The merged table can hold the rows of both."""
    assert plan_lock(ONE, {ONE: waits(actions), TWO: Member(T)}, THERE, Mode.OPTIMISTIC).is_resolved


def test_optimistic_waits_for_an_incompatible_type():
    """Numbers are converted to text for all shards together."""
    members = {ONE: waits("MODIFY v VARCHAR(20)"), TWO: Member(T)}
    assert plan_lock(ONE, members, THERE, Mode.OPTIMISTIC).remain == (TWO,)
    members[TWO] = waits("MODIFY v VARCHAR(20), ADD a INT")
    assert plan_lock(ONE, members, THERE, Mode.OPTIMISTIC).conflicts == (TWO,)
    members[TWO] = waits("MODIFY v VARCHAR(20)")
    assert plan_lock(TWO, members, THERE, Mode.OPTIMISTIC).is_resolved


def coordinated():
    shards = Coordination(Mode.PESSIMISTIC)
    for shard in (ONE, TWO):
        shards.set_schema(TARGET, shard, T)
    return shards


def test_the_life_cycle_of_a_lock():
    """The first waits; the second makes the change; then nothing remains for the first to change, and it is released."""
    shards = coordinated()
    assert shards.ask(TARGET, ONE, waiting("ADD a INT"), THERE).action is Action.WAIT
    (shown,) = shards.locks()
    assert (shown.target, shown.statements, shown.lock.remain) == (TARGET, ("ALTER TABLE t ADD a INT",), (TWO,))
    assert shards.released("s1") == {}
    assert shards.is_coordinating(TARGET)
    verdict = shards.ask(TARGET, TWO, waiting("ADD a INT", 300), THERE)
    assert verdict.action is Action.EXEC
    assert [column.name for column in verdict.others[0].columns] == ["id", "v", "w", "a"]
    assert shards.released("s1") == {}
    after = Columns({**THERE.types, "a": "INT"})
    shards.set_columns(TARGET, after)
    shards.set_schema(TARGET, TWO, altered("ADD a INT").after)
    assert shards.locks() == []
    assert shards.released("s1") == {("d", "t1"): Position(1, "b.000001", 100)}
    assert shards.ask(TARGET, ONE, waiting("ADD a INT"), after).action is Action.EXEC
    shards.set_schema(TARGET, ONE, altered("ADD a INT").after)
    assert not shards.is_coordinating(TARGET)
    assert shards.at_rest()


def test_a_dropped_shard_is_not_waited_for():
    """Nor a shard missing in the log, once the log has been applied and the source reports the shard's structure."""
    shards = coordinated()
    after = altered("ADD a INT").after
    shards.set_schema(TARGET, THREE, None)
    shards.expects(TARGET, THREE, after)
    shards.ask(TARGET, ONE, waiting("ADD a INT"), THERE)
    shards.remove_shard(TARGET, TWO)
    assert shards.released("s1") == {}
    shards.assume_catalog_schemas("s2")
    assert set(shards.released("s1")) == {ONE.name}


@pytest.mark.parametrize("action", [Action.EXEC, Action.SKIP])
def test_an_override_applies_to_waiting_shards_only(action):
    """The override releases the shard, and does not apply to a later occurrence of the same statement."""
    shards = coordinated()
    shards.ask(TARGET, ONE, waiting("ADD a INT"), THERE)
    assert not shards.decide(("d", "other"), action, str(ONE))
    assert shards.decide(TARGET, action, str(ONE))
    assert set(shards.released("s1")) == {ONE.name}
    assert shards.ask(TARGET, ONE, waiting("ADD a INT"), THERE).action is action
    shards.set_schema(TARGET, ONE, altered("ADD a INT").after)
    shards.set_schema(TARGET, ONE, T)
    assert shards.ask(TARGET, ONE, waiting("ADD a INT", 900), THERE).action is Action.WAIT


def test_an_optimistic_statement_is_executed_at_once():
    """The rows of the other shards keep their structures, whatever their order among the shards."""
    for asking, others in ((ONE, (TWO, THREE)), (TWO, (ONE, THREE)), (THREE, (ONE, TWO))):
        shards = Coordination(Mode.OPTIMISTIC)
        structures = dict.fromkeys((ONE, TWO, THREE), T)
        structures[others[0]] = altered("DROP w").after
        for shard, schema in structures.items():
            shards.set_schema(TARGET, shard, schema)
        verdict = shards.ask(TARGET, asking, waiting("ADD a INT"), THERE)
        assert verdict.action is Action.EXEC
        assert verdict.others == tuple(structures[other] for other in others)


def test_at_rest_only_without_active_workers():
    """Another source may still reach the statement that a shard waits for."""
    shards = coordinated()
    shards.begins()
    shards.ask(TARGET, ONE, waiting("ADD a INT"), THERE)
    assert not shards.at_rest()
    shards.ends()
    assert shards.at_rest()


def test_an_override_survives_a_restart_for_all_ready_shards():
    """It applies to whichever shard reaches the statement first; other statements of these shards wait as usual."""
    group = Coordination(Mode.PESSIMISTIC)
    for shard in (ONE, TWO, THREE):
        group.set_schema(TARGET, shard, T)
    group.decide_ahead(TARGET, Action.EXEC, [str(ONE), str(TWO)], ["ALTER TABLE t DROP w"])
    dropped = waiting("DROP  w").altered.after
    assert group.ask(TARGET, ONE, waiting("DROP  w"), THERE).action is Action.EXEC
    group.set_schema(TARGET, ONE, dropped)
    assert group.ask(TARGET, TWO, waiting("DROP  w"), THERE).action is Action.EXEC
    group.set_schema(TARGET, TWO, dropped)
    assert group.ask(TARGET, THREE, waiting("ADD a INT"), THERE).action is Action.WAIT
    group.decide_ahead(TARGET, Action.EXEC, [str(TWO)], ["ALTER TABLE t DROP w"])
    assert group.ask(TARGET, TWO, waiting("ADD b INT", before=dropped), THERE).action is Action.WAIT
