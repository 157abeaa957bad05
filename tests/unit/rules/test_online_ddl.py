"""The tables of gh-ost and pt-online-schema-change."""

import pytest

from dmdelta.config import LakehouseConfig, SourceConfig, TaskSpec
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


def renames(text):
    pairs = [pair.split(" TO ") for pair in text.split(", ")]
    return [(("s", was), ("s", to)) for was, to in pairs]


@pytest.mark.parametrize(
    "statement",
    [
        "t TO _t_old, _t_new TO t",
        "_t_gho TO t, t TO _t_del",
        "t TO _t_old",
        "a TO b, b TO c",
        "t TO _t_old, staging TO t",  # a swap by hand: both are tables of the task
        "_t_new TO _t_old",
    ],
)
def test_patterns_that_fit_a_statement(statement):
    """The tools' last step, and renames of other tables."""
    assert online_ddl().misfit(renames(statement)) == ""


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("t TO t_bin, _t_new TO t", "s.t_bin matches no pattern of trash-table-rules"),
        ("t TO _t_old, __t_new TO t", "shadow-table-rules captures s._t as its real table"),
        ("__t_new TO t", "shadow-table-rules captures s._t as its real table"),
    ],
)
def test_a_partially_recognized_table_switch(statement, reason):
    """The real table would lose its rows, or its schema change; without patterns every rename is an ordinary one."""
    assert online_ddl().misfit(renames(statement)).endswith(reason)
    assert OnlineDdl().misfit(renames(statement)) == ""
