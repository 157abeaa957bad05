"""The names of collation ids are those of the servers' own lists, and the same from the log and from the catalog."""

from pathlib import Path

import pytest

from dmdelta.binlog.values.collation_names import collation_name, plain_name
from dmdelta.binlog.values.collations import charset_of
from dmdelta.model.change import Op
from dmdelta.model.schema import TableSchema
from tests.support.catalog import structures_of
from tests.support.recording import record
from tests.support.replay import decode
from tests.support.servers import Server

_LISTS = {
    "mysql": "SELECT id, collation_name, character_set_name FROM information_schema.collations",
    "mariadb": """SELECT id, full_collation_name, character_set_name
                  FROM information_schema.collation_character_set_applicability WHERE id IS NOT NULL""",
}


@pytest.mark.parametrize("name", ["mysql57", "mysql80", "mariadb"])
def test_every_collation_of_a_server_has_its_name(name: str, request: pytest.FixtureRequest) -> None:
    """Ids have the names and the character sets that the server gives them."""
    server: Server = request.getfixturevalue(name)
    listed = {
        int(number): (plain_name(called), charset) for number, called, charset in server.query(_LISTS[server.flavor])
    }
    known = {number: (collation_name(number), charset_of(number)) for number in listed}
    assert known == {
        number: (called, {"utf8": "utf8mb3"}.get(charset, charset)) for number, (called, charset) in listed.items()
    }


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_log_and_catalog_give_the_same_structure(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A table has one structure, version included, whichever of the two it comes from."""
    server: Server = request.getfixturevalue(name)
    database = server.fresh_database("collations")
    server.execute(
        """CREATE TABLE t (i INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb3, b CHAR(9) COLLATE utf8mb4_unicode_ci,
                           c TEXT COLLATE utf8mb4_bin, d BLOB, e ENUM('x') CHARACTER SET latin1, f VARBINARY(3))""",
        "INSERT INTO t (i) VALUES (1)",
        database=database,
    )
    (catalog,) = structures_of(server, database)
    changes = decode(record(server, tmp_path / "archive"), lambda schema, _: schema == database)
    (logged,) = [TableSchema.from_json(str(change.ddl)) for change in changes if change.op is Op.SCHEMA]
    told = [column.collation for column in logged.columns]
    assert told[1:] == ["utf8mb3_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", None, "latin1_swedish_ci", None]
    assert (logged.to_json(), logged.version) == (catalog.to_json(), catalog.version)
