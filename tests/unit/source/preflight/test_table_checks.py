"""Findings that no test server produces: types and character sets of future servers."""

import pytest

from dmdelta.model.schema import SEQUENCE_COLUMNS, Column, TableSchema
from dmdelta.source.preflight.finding import Level
from dmdelta.source.preflight.table_checks import Reading, TableFacts, table_findings
from dmdelta.source.preflight.time_zone import Zone, zone_finding
from dmdelta.source.server import ServerIdentity


def judged(*columns: Column):
    facts = TableFacts(
        ServerIdentity("mysql", (9, 9, 0), "u", 1), [TableSchema("shop", "t", columns)], [], [], (100, 1), Zone("UTC")
    )
    return next(found for found in table_findings(facts, Reading()) if found.name == "table_schema")


def test_unknown_types_and_character_sets_are_named() -> None:
    """Each with its column and the reason; known ones are not named."""
    found = judged(Column("id", "int"), Column("x", "xmltype"), Column("k", "text", charset="klingon"))
    assert found.level is Level.FAIL
    assert "shop.t.x: the type xmltype is unknown" in found.message
    assert "shop.t.k: the character set klingon is unknown" in found.message
    assert "shop.t.id" not in found.message
    assert judged(Column("id", "int"), Column("v", "varchar", charset="utf8mb4")).level is Level.PASS


def test_only_a_load_in_another_zone_reads_virtual_columns_differently() -> None:
    """A zone equal to UTC, no virtual column, or no full load: no warning."""
    virtual = ("shop.t.day",)
    assert zone_finding(Zone("+08:00", virtual), loads=True).level is Level.WARN
    for zone, loads in ((Zone("UTC", virtual), True), (Zone("+08:00"), True), (Zone("+08:00", virtual), False)):
        found = zone_finding(zone, loads=loads)
        assert (found.level, found.fix) == (Level.PASS, "")
        assert zone.name in found.message


@pytest.mark.parametrize(("flavor", "level"), [("mariadb", Level.FAIL), ("mysql", Level.PASS)])
def test_a_table_with_the_columns_of_a_sequence_fails_the_check(flavor, level) -> None:
    """In MariaDB's log it looks like a sequence."""
    alike = TableSchema("shop", "t", tuple(Column(name, "bigint") for name in SEQUENCE_COLUMNS))
    facts = TableFacts(ServerIdentity(flavor, (10, 11, 0), "u", 1), [alike], [], [], (100, 1), Zone("UTC"))
    found = next(one for one in table_findings(facts, Reading()) if one.name == "table_type")
    assert found.level is level
    assert ("shop.t" in found.message) is (level is Level.FAIL)
