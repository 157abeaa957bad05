"""The planned commits for the effects of one statement. The silver table is a stand-in with columns and rows."""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest

from dmdelta.ddl.tracking.effects import Created, Dropped, Renamed, Truncated, Unread
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.ddl.types.silver_types import silver_columns
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.changes import Verb
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import SourceRules
from dmdelta.rules.operators import Operator
from dmdelta.rules.operators import Verb as Override
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.ddl import plan_following
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.table.table import Condition

AT = Position(1, "b.000001", 20)
T = TableSchema("d", "t", (Column("id", "int", nullable=False), Column("v", "int"), Column("w", "int")), ("id",))
NAME = ("d", "t")
SKIPPING = SourceRules("s1", operators={AT: Operator(Override.SKIP)})


@pytest.fixture(autouse=True)
def history(monkeypatch):
    """The history of the silver table does not show where it is."""
    monkeypatch.setattr("dmdelta.silver.apply.ddl.may_be_ahead", lambda *_, **__: True)


class Silver:
    """Stands in for Spark: one table of a structure."""

    def __init__(self, schema=T, *, empty=False):
        self.types, self.empty = silver_columns(schema), empty

    def table(self, _):
        schema = SimpleNamespace(fields=_fields(self.types.items()))
        return SimpleNamespace(columns=list(self.types), schema=schema, isEmpty=lambda: self.empty)

    def sql(self, query):
        kinds = query.removeprefix("SELECT CAST(NULL AS ").removesuffix(")").split("), CAST(NULL AS ")
        return SimpleNamespace(schema=SimpleNamespace(fields=_fields(("", kind) for kind in kinds)))


def _fields(columns):
    return [
        SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=kind.replace(" ", "").lower))
        for name, kind in columns
    ]


def effects_of(actions, before=T):
    return statement_effects(f"ALTER TABLE t {actions}", "d", lambda _: before)


def after(actions, before=T):
    return effects_of(actions, before)[0].after


def planned(effects, silver=None, *, condition=Condition.PRESENT, mode=Mode.NORMAL, rules=None):
    """The commits as (verb, text), and the condition afterwards."""
    context = SilverContext(Lakehouse(root="/lake"), "task", "s1", "run", "mysql", rules or SourceRules("s1"))
    request = ApplyRequest(context=context, schema="d", table="t", begin=AT, end=AT, batch=1, mode=mode)
    changes, found = plan_following(ApplyContext(silver or Silver(), request, condition, count()), effects, AT)
    return [(change.verb, change.text) for change in changes], found


def verbs(*arguments, **options):
    changes, condition = planned(*arguments, **options)
    return [verb for verb, _ in changes], condition


EMPTIED, MARKED = [Verb.DELETE], [Verb.DELETE, Verb.ALTER]
CREATED = [Verb.DELETE, Verb.ALTER, Verb.ALTER]
"""Its rows are deleted, it is clustered by its key, and it is no longer marked as dropped."""


@pytest.mark.parametrize(
    ("condition", "effects", "changes", "then"),
    [
        (Condition.PRESENT, [Truncated(NAME)], EMPTIED, Condition.PRESENT),
        (Condition.PRESENT, [Dropped(NAME)], MARKED, Condition.DROPPED),
        (Condition.DROPPED, [Created(NAME, T)], CREATED, Condition.PRESENT),
        (Condition.PRESENT, [Dropped(NAME), Created(NAME, T)], [*MARKED, *CREATED], Condition.PRESENT),
        (Condition.DROPPED, [Created(NAME, None)], [], Condition.DROPPED),
        (Condition.PRESENT, [Unread(NAME, "unknown")], [], Condition.PRESENT),
        (Condition.PRESENT, effects_of("ADD x INT"), [Verb.ALTER], Condition.PRESENT),
        (Condition.DROPPED, effects_of("ADD x INT"), [], Condition.DROPPED),
        (Condition.DROPPED, [Created(NAME, T), *effects_of("DROP v")], [*CREATED, Verb.ALTER], Condition.PRESENT),
        (Condition.PRESENT, [Dropped(NAME), *effects_of("DROP v")], [Verb.DELETE, Verb.ALTER], Condition.DROPPED),
    ],
)
def test_the_effects_of_a_statement_are_applied_in_order(condition, effects, changes, then):
    """A dropped table is not altered until it is created again; the structure must be known for that."""
    assert verbs(effects, condition=condition) == (changes, then)


def test_a_table_that_is_created_with_other_columns_is_rewritten():
    """With the same columns its rows are deleted."""
    wider = after("ADD x BIGINT")
    changes, condition = planned([Created(NAME, wider)], condition=Condition.DROPPED)
    assert condition is Condition.PRESENT
    assert changes[0][0] is Verb.REWRITE
    assert "CAST(NULL AS BIGINT) AS `x`" in changes[0][1]
    assert verbs([Created(NAME, wider)], Silver(wider))[0] == CREATED


@pytest.mark.parametrize("before", [[], [Truncated(NAME)]])
def test_an_override_that_renames_is_refused(before):
    """Renames of the log itself are applied elsewhere."""
    with pytest.raises(SchemaError, match="cannot contain a RENAME"):
        planned([*before, Renamed(NAME, ("d", "u"))])


def test_in_safe_mode_a_change_that_silver_has_is_not_repeated():
    """Only values of older rows are set; a table that still has the structure before is altered."""
    actions = "ADD x INT DEFAULT 5"
    assert verbs(effects_of(actions), Silver(after(actions)), mode=Mode.SAFE)[0] == [Verb.UPDATE]
    assert verbs(effects_of(actions), mode=Mode.SAFE)[0] == [Verb.ALTER, Verb.UPDATE]
    assert verbs(effects_of("ADD x INT"), Silver(after("ADD x INT")), mode=Mode.SAFE)[0] == []


def test_in_safe_mode_a_table_is_clustered_by_its_key_again():
    """A CREATE TABLE that is read again has clustered it by an earlier key: Delta would refuse to drop that column."""
    actions, columns = "DROP PRIMARY KEY, ADD PRIMARY KEY (v)", tuple(replace(one, nullable=False) for one in T.columns)
    short = replace(T, columns=columns)
    wide = replace(T, columns=(*(Column(f"c{number}", "int") for number in range(40)), *columns))
    assert texts([Created(NAME, short), *effects_of(actions, short)])[-1] == "CLUSTER BY (`v`)"
    assert texts(effects_of(actions, short)) == ["CLUSTER BY (`v`)"]
    counted, by_key = texts(effects_of(actions, wide), Silver(wide))
    assert counted.startswith("SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols'")
    assert by_key == "CLUSTER BY (`v`)"
    for silver in (Silver(), Silver(after("ADD y INT"))):
        assert texts(effects_of("DROP PRIMARY KEY"), silver) == ["CLUSTER BY NONE"]


def texts(*arguments, **options):
    return [text for _, text in planned(*arguments, mode=Mode.SAFE, **options)[0]]


@pytest.mark.parametrize("rules", [None, SKIPPING])
@pytest.mark.parametrize(
    ("actions", "later"),
    [
        ("ADD x INT", "ADD x INT, ADD y INT"),
        ("ADD x INT FIRST", "ADD x INT, ADD y INT"),
        ("ADD x INT, ADD y INT", "ADD x INT, ADD y INT, ADD z INT"),
        ("DROP w", "DROP w, ADD y INT"),
        ("CHANGE w x INT", "CHANGE w x INT, ADD y INT"),
        ("CHANGE w W INT", "CHANGE w W INT, ADD y INT"),
        ("MODIFY w BIGINT", "MODIFY w BIGINT, ADD y INT"),
    ],
)
def test_in_safe_mode_silver_may_have_the_columns_of_later_statements(actions, later, rules):
    """A statement whose columns silver has is not repeated; only values of older rows are set."""
    assert texts(effects_of(actions), Silver(after(later)), rules=rules) == []
    (values,) = texts(effects_of(f"{actions}, ADD d INT DEFAULT 5"), Silver(after(f"{later}, ADD d INT")), rules=rules)
    assert values.startswith("SET `d` = coalesce(`d`, CAST('5' AS INT)) WHERE _dm_version <")


@pytest.mark.parametrize(
    ("actions", "later"),
    [
        ("ADD x INT", "ADD x BIGINT, ADD y INT"),
        ("ADD x INT", "ADD X INT, ADD y INT"),
        ("CHANGE w x INT", "ADD x INT, ADD y INT"),
        ("CHANGE w x INT", "DROP w, ADD y INT"),
        ("ADD x INT", "ADD y INT"),
        ("ADD x INT, ADD y INT", "ADD y INT, ADD z INT"),
        ("DROP w, ADD x INT", "ADD x INT, ADD y INT"),
        ("CHANGE v w INT, CHANGE w v INT", "ADD y INT"),
    ],
)
def test_in_safe_mode_a_statement_that_silver_may_have_followed_stops_the_table(actions, later):
    """If silver's columns do not show what is left to do."""
    with pytest.raises(SchemaError, match="applied before"):
        texts(effects_of(actions), Silver(after(later)))


@pytest.mark.parametrize("actions", ["DROP w", "CHANGE w x INT", "MODIFY w BIGINT"])
def test_columns_that_the_source_dropped_show_nothing(actions):
    """With rules that exclude statements silver has more columns; without, a later statement may have added them."""
    silver = Silver(after("ADD y INT"))
    assert texts(effects_of(actions), silver, rules=SKIPPING) == [
        text for _, text in planned(effects_of(actions), silver)[0]
    ]
    with pytest.raises(SchemaError, match="columns do not show whether it was applied before"):
        texts(effects_of(actions), silver)


def test_in_safe_mode_unknown_values_do_not_matter_to_columns_that_silver_has():
    """The columns got their values before."""
    actions = "ADD x TIMESTAMP DEFAULT NOW()"
    assert texts(effects_of(actions), Silver(after(f"{actions}, ADD y INT"))) == []
    with pytest.raises(SchemaError, match="NOW"):
        texts(effects_of(actions))


def test_in_safe_mode_a_reused_name_is_ambiguous():
    """The table looks the same before and after, so whether it was applied is unknown; in normal mode it was not."""
    swap = effects_of("CHANGE v w INT, CHANGE w v INT")
    with pytest.raises(SchemaError, match="reuses the name w for another column"):
        planned(swap, mode=Mode.SAFE)
    assert set(verbs(swap)[0]) == {Verb.ALTER}


def test_a_change_with_unknown_values_needs_an_empty_table():
    """Rows would lack the values that the server gave them."""
    actions = "ADD x TIMESTAMP DEFAULT NOW()"
    with pytest.raises(SchemaError):
        planned(effects_of(actions))
    assert Verb.ALTER in verbs(effects_of(actions), Silver(empty=True))[0]


def test_a_change_of_a_column_that_silver_lacks_has_no_effect():
    """A filter or an override kept it out of silver; the other columns of the statement are changed."""
    lacks_w = Silver(after("DROP w"))
    changes = planned(effects_of("DROP w, ADD x INT"), lacks_w, rules=SKIPPING)[0]
    assert changes == [(Verb.ALTER, "ADD COLUMNS (`x` INT AFTER `v`)")]
    assert planned(effects_of("DROP w"), lacks_w, rules=SKIPPING)[0] == []
    changes = planned([*effects_of("ADD x INT"), *effects_of("DROP x", after("ADD x INT"))], lacks_w, rules=SKIPPING)[0]
    assert [text for _, text in changes] == ["ADD COLUMNS (`x` INT AFTER `v`)", "DROP COLUMNS (`x`)"]
