"""What an account lacks for a full load, according to its grants."""

import pytest

from dmdelta.model.schema import TableSchema
from dmdelta.rules import BlockAllowList
from dmdelta.source.preflight.finding import Level
from dmdelta.source.preflight.privileges import load_finding, lock_tables_finding

A_TABLE, B_TABLE = (TableSchema(schema, "t", ()) for schema in ("a", "b"))


def grant(on, privileges="SELECT"):
    return f"GRANT {privileges} ON {on} TO `d`@`%`"


@pytest.mark.parametrize(
    ("selection", "grants", "visible", "level", "fix"),
    [
        ({"do_dbs": ("a", "b")}, ["*.*"], [], Level.PASS, ""),
        ({"do_dbs": ("a", "b")}, ["`a`.*", "`b`.*"], [], Level.PASS, ""),
        ({"do_dbs": ("a", "b")}, ["`_`.*"], [], Level.PASS, ""),
        ({"do_dbs": ("A",)}, ["`a`.*"], [A_TABLE], Level.PASS, ""),
        ({"do_dbs": ("a", "b")}, ["`a`.*"], [A_TABLE], Level.FAIL, "GRANT SELECT ON `b`.* TO <account>"),
        ({"do_dbs": ("a", "b")}, ["`a`.*", "`b`.`t`"], [A_TABLE, B_TABLE], Level.WARN, "GRANT SELECT ON `b`.*"),
        ({"do_tables": (("b", "t"),)}, ["`b`.`t`"], [B_TABLE], Level.PASS, ""),
        ({"do_tables": (("b", "t"),)}, ["`b`.`u`"], [], Level.FAIL, "GRANT SELECT ON `b`.`t` TO <account>"),
        ({"do_tables": (("b", "t*"),)}, ["`b`.`t`"], [B_TABLE], Level.WARN, "GRANT SELECT ON `b`.*"),
        ({"do_tables": (("b", "t"),), "do_dbs": ("a",)}, ["`a`.*"], [], Level.PASS, ""),
        ({"do_tables": (("*", "t"),), "do_dbs": ("a",)}, ["`a`.*"], [A_TABLE], Level.PASS, ""),
        ({"do_dbs": ("shop*",)}, ["`shop%`.*"], [], Level.WARN, "GRANT SELECT ON *.*"),
        ({}, ["`a`.*"], [A_TABLE], Level.WARN, "GRANT SELECT ON *.*"),
        ({}, ["*.*"], [A_TABLE], Level.PASS, ""),
    ],
)
def test_selected_tables_without_select_are_reported(selection, grants, visible, level, fix):
    """They are invisible, so they would not be loaded: named ones fail, those that patterns may match are a warning."""
    places = BlockAllowList(**selection).places
    found = load_finding([grant(on) for on in grants], places, visible, alone=True)
    assert found.level is level
    assert fix in found.fix


@pytest.mark.parametrize(
    ("grants", "alone"), [([grant("`a`.*")], False), ([grant("`a`.*"), "GRANT `reader`@`%` TO `d`@`%`"], True)]
)
def test_what_another_source_or_a_role_may_have_is_a_warning(grants, alone):
    """The same allow-list applies to all sources; SHOW GRANTS does not resolve roles."""
    found = load_finding(grants, (("a", "*"), ("b", "*")), [A_TABLE], alone=alone)
    assert found.level is Level.WARN
    assert "b.*" in found.message


@pytest.mark.parametrize(
    ("revoked", "level"), [("mysql", Level.PASS), ("performance_schema", Level.PASS), ("b", Level.WARN)]
)
def test_a_revoke_on_a_system_schema_is_no_exception(revoked, level):
    """For a pattern of schemas any other revoke may be one."""
    grants = [grant("*.*"), f"REVOKE SELECT ON `{revoked}`.* FROM `d`@`%`"]
    assert load_finding(grants, (("~^a", "*"),), [A_TABLE], alone=True).level is level


@pytest.mark.parametrize(
    "grants",
    [
        [grant("*.*"), "REVOKE SELECT ON `b`.* FROM `d`@`%`"],
        [grant("`a`.*"), grant("`b`.`t`", "SELECT (`x`, `y`), INSERT")],
    ],
)
def test_neither_excepted_schemas_nor_single_columns_can_be_loaded(grants):
    """MySQL 8 lists a schema that is excepted from *.* as a REVOKE."""
    assert load_finding(grants, (("a", "*"), ("b", "*")), [A_TABLE], alone=True).level is Level.FAIL
    assert load_finding(grants, (("a", "*"),), [A_TABLE], alone=True).level is Level.PASS


@pytest.mark.parametrize(
    ("on", "level"),
    [
        ("*.*", Level.PASS),
        ("`shop_1`.*", Level.PASS),
        ("`shop\\_1`.*", Level.PASS),
        ("`shop%`.*", Level.PASS),
        ("`sh_p%`.*", Level.PASS),
        ("`shop\\_`.*", Level.FAIL),
        ("`shop_1`.`t`", Level.FAIL),
    ],
)
def test_locking_may_be_granted_by_a_pattern(on, level):
    """As the server applies it: `%` and `_` match, unless they are escaped."""
    grants = [grant("*.*"), grant(on, "SELECT, LOCK TABLES")]
    assert lock_tables_finding([TableSchema("shop_1", "t", ())], grants).level is level
