"""Statements that the quarantine of a table does not allow."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply import gate
from dmdelta.silver.apply.gate import assert_keys_kept
from dmdelta.silver.apply.quarantine import Quarantine
from dmdelta.silver.apply.silver_context import SilverContext

CONTEXT = SilverContext(Lakehouse(root="/lake"), "task", "s", "run", "mysql", NO_RULES)
TABLE = TableSchema("d", "t", (Column("id", "datetime", nullable=False, precision=6), Column("v", "int")), ("id",))


@pytest.fixture
def alter(monkeypatch):
    """A statement on the table, which has quarantined rows of some structures."""

    def change(actions, structures=(TABLE,), context=CONTEXT):
        monkeypatch.setattr(gate, "has_quarantined", lambda *_: True)
        monkeypatch.setattr(Quarantine, "structures", lambda *_: list(structures))
        work = SimpleNamespace(spark=None, request=SimpleNamespace(context=context, target=context.table(TABLE.name)))
        assert_keys_kept(work, statement_effects(f"ALTER TABLE t {actions}", "d", lambda _: TABLE))

    return change


def test_a_statement_that_rewrites_the_key_of_quarantined_rows_is_refused(alter):
    """Also in the same type of silver. Rows that a snapshot has read after it have the new key."""
    alter("ADD w INT")
    alter("MODIFY id DATETIME(6) NOT NULL FIRST")
    with pytest.raises(SchemaError, match=r"dmdelta quality release SPEC --table d\.t; --force, --discard"):
        alter("MODIFY id DATETIME NOT NULL")
    rounded = replace(TABLE, columns=(replace(TABLE.columns[0], precision=0), TABLE.columns[1]))
    alter("MODIFY id DATETIME NOT NULL", [rounded])
    with pytest.raises(SchemaError):
        alter("MODIFY id DATETIME NOT NULL", [rounded, TABLE])


def test_rows_of_a_replay_cannot_be_released(alter):
    """They are in the quarantine of its own table."""
    with pytest.raises(SchemaError, match="quarantined rows: replay it without --check"):
        alter("CHANGE id pk DATETIME(6) NOT NULL", context=replace(CONTEXT, can_release=False))
