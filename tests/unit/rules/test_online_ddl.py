"""The tables of gh-ost and pt-online-schema-change."""

import pytest

from dmdelta.config import LakehouseConfig, SourceConfig, TaskSpec
from dmdelta.errors import ConfigError
from dmdelta.rules import BlockAllowList, OnlineDdl, Role, Standing


def online_ddl(**options):
    source = SourceConfig(source_id="one", host="db", user="u")
    return OnlineDdl.from_config(
        TaskSpec(name="t", sources=(source,), lakehouse=LakehouseConfig(root="lake"), **options)
    )


ROLES = {
    "t": (Role.REAL, "t"),
    "_t_gho": (Role.SHADOW, "t"),
    "_t_new": (Role.SHADOW, "t"),
    "__t_new_new": (Role.SHADOW, "_t_new"),
    "_t_ghc": (Role.TRASH, "t"),
    "_t_del": (Role.TRASH, "t"),
    "_t_old": (Role.TRASH, "t"),
    "__new": (Role.REAL, "__new"),
    "t_new": (Role.REAL, "t_new"),
    "_t_NEW": (Role.REAL, "_t_NEW"),
    "_t_new2": (Role.REAL, "_t_new2"),
}


@pytest.mark.parametrize("table", ROLES)
def test_the_tools_tables_match_dms_patterns(table):
    """gh-ost's and pt-osc's table names give the role and the real table."""
    role, real = ROLES[table]
    assert online_ddl().standing("shop", table) == Standing(role, ("shop", real))
    assert online_ddl().role("shop", table) is role


def test_the_patterns_are_configurable():
    """Rules in the spec replace DM's."""
    own = online_ddl(shadow_table_rules=(r"^tmp_(.+)$",), trash_table_rules=(r"^(.+)_bak$",))
    assert own.standing("s", "tmp_t") == Standing(Role.SHADOW, ("s", "t"))
    assert own.standing("s", "t_bak") == Standing(Role.TRASH, ("s", "t"))
    assert own.role("s", "_t_new") is Role.REAL


def test_without_online_ddl_every_table_is_a_real_table():
    """`online-ddl: false` disables name matching."""
    off = online_ddl(online_ddl=False)
    assert off.standing("s", "_t_new") == Standing(Role.REAL, ("s", "_t_new"))
    assert off.wanted(BlockAllowList(do_tables=(("s", "t"),)).wanted, "s", "_t_new") is False


def test_a_shadow_table_is_replicated_if_its_real_table_is():
    """The allow-list is checked with the real table; trash tables are never replicated."""
    allows = BlockAllowList(do_dbs=("shop",), do_tables=(("shop", "t"),)).wanted
    tables = {"t": True, "u": False, "_t_gho": True, "_u_gho": False, "_t_old": False, None: True}
    assert {table: online_ddl().wanted(allows, "shop", table) for table in tables} == tables
    assert online_ddl().wanted(allows, "other", None) is False


def test_a_partially_recognized_table_switch_is_an_error():
    """The tools' last statement renames two tables: if only one is recognized, the patterns are wrong."""
    known = online_ddl()
    known.check_renames([(("s", "t"), ("s", "_t_old")), (("s", "_t_new"), ("s", "t"))])
    known.check_renames([(("s", "a"), ("s", "b")), (("s", "b"), ("s", "c"))])
    known.check_renames([(("s", "t"), ("s", "_t_old"))])
    with pytest.raises(ConfigError, match=r"s\.t_shadow matches no pattern") as shadow:
        known.check_renames([(("s", "t"), ("s", "_t_old")), (("s", "t_shadow"), ("s", "t"))])
    assert "shadow-table-rules" in shadow.value.hint
    with pytest.raises(ConfigError, match=r"s\.t_bin matches no pattern") as trash:
        known.check_renames([(("s", "t"), ("s", "t_bin")), (("s", "_t_new"), ("s", "t"))])
    assert "trash-table-rules" in trash.value.hint


SWITCH = [(("s", "t"), ("s", "_t_old")), (("s", "_t_new"), ("s", "t"))]


@pytest.mark.parametrize(
    ("patterns", "key"),
    [({"shadow": ("^_(.+)_new$",)}, "trash-table-rules"), ({"trash": ("^_(.+)_old$",)}, "shadow-table-rules")],
)
def test_patterns_of_one_kind_alone_do_not_fit_a_table_switch(patterns, key):
    """The hint names the missing kind; without any patterns every rename is an ordinary one."""
    with pytest.raises(ConfigError) as caught:
        OnlineDdl(**patterns).check_renames(SWITCH)
    assert key in caught.value.hint
    OnlineDdl().check_renames(SWITCH)


def test_a_switch_among_other_renames_is_not_checked():
    """The tools rename two tables in a statement of its own."""
    online_ddl().check_renames(
        [(("s", "t"), ("s", "_t_old")), (("s", "t_shadow"), ("s", "t")), (("s", "a"), ("s", "b"))]
    )


def test_the_patterns_round_trip_through_json():
    """A copy on an executor decides like the original; a text without patterns knows none."""
    rules = online_ddl()
    assert OnlineDdl.from_json(rules.to_json()) == rules
    assert OnlineDdl.from_json("{}") == OnlineDdl()
