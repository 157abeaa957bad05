"""Findings of `dmdelta check` for a target: server, kind, privileges, packet size."""

import pytest

from dmdelta.sink.target.connection import SQL_MODE
from dmdelta.sink.target.preflight import ON_METADATA, ON_TABLES, PACKET_BYTES, TargetFacts, plan_target_checks


def checks(*grants, version="8.0.36", packet=PACKET_BYTES, tidb=False, schemas=("shop",), **session):
    return plan_target_checks(
        TargetFacts(version, "o'u@%", ("GRANT USAGE ON *.* TO `o'u`@`%`", *grants), packet, **session),
        tidb=tidb,
        schemas=schemas,
        metadata="dm_meta",
    )


def grant(privileges, on):
    return f"GRANT {', '.join(privileges)} ON {on} TO `u`@`%`"


ENOUGH = (grant(ON_TABLES, "`shop`.*"), grant(ON_METADATA, r"`dm\_meta`.*"))


@pytest.mark.parametrize(
    "grants",
    [
        ENOUGH,
        (grant(["ALL PRIVILEGES"], "*.*"),),
        (
            grant(["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"], "*.*"),
            grant(["ALTER", "DROP", "INDEX"], "`sh%`.*"),
        ),
    ],
)
def test_enough_privileges(grants):
    """On all schemas, on the schema by its name, or by a pattern."""
    assert all(check.passes for check in checks(*grants))


@pytest.mark.parametrize("missing", ON_TABLES)
def test_each_missing_privilege_is_named(missing):
    """With the statement that grants it."""
    held = [name for name in ON_TABLES if name != missing]
    (found,) = [check for check in checks(grant(held, "`shop`.*"), ENOUGH[1]) if not check.passes]
    assert (found.name, found.stops) == (f"privilege {missing.lower()}", True)
    assert found.fix == f"GRANT {missing} ON `shop`.* TO 'o''u'@'%'"


@pytest.mark.parametrize("missing", ON_METADATA)
def test_each_missing_privilege_on_the_metadata_is_named(missing):
    """The sink's own tables need fewer; a schema with a similar name does not count."""
    held = [name for name in ON_METADATA if name != missing]
    given = (ENOUGH[0], grant(held, "`dm_meta`.*"), grant(ON_METADATA, "`dm_meta2`.*"))
    (found,) = [check for check in checks(*given) if not check.passes]
    assert found.fix == f"GRANT {missing} ON `dm_meta`.* TO 'o''u'@'%'"


def test_a_partial_revoke_counts():
    """MySQL 8: a privilege on all schemas that is revoked on one."""
    revoke = "REVOKE INSERT, DROP ON `shop`.* FROM `u`@`%`"
    found = checks(grant(["ALL PRIVILEGES"], "*.*"), revoke)
    assert [check.name for check in found if check.stops] == ["privilege insert", "privilege drop"]


def test_privileges_on_one_table_or_by_a_role():
    """A grant on one table does not count for the schema; a role's privileges are unknown, which is not a failure."""
    found = checks(grant(ON_TABLES, "`shop`.`t`"), ENOUGH[1], "GRANT `writer`@`%` TO `u`@`%`")
    missing = [check for check in found if not check.passes]
    assert len(missing) == len(ON_TABLES)
    assert not any(check.stops for check in missing)
    assert all("unless by a role" in check.message for check in missing)


@pytest.mark.parametrize(
    ("version", "tidb", "passes", "stops"),
    [
        ("8.0.36", False, True, False),
        ("5.6.51-log", False, False, False),
        ("10.11.6-MariaDB-log", False, True, False),
        ("8.0.11-TiDB-v8.1.0", True, True, False),
        ("8.0.11-TiDB-v5.4.0", True, False, False),
        ("8.0.11-TiDB-v8.1.0", False, False, True),
        ("8.0.36", True, False, True),
    ],
)
def test_the_server_is_of_the_specs_kind(version, tidb, passes, stops):
    """Another kind has another dialect, so it stops; an old version is a warning."""
    found = checks(*ENOUGH, version=version, tidb=tidb)[0]
    assert (found.name, found.passes, found.stops) == ("version", passes, stops)


def test_a_small_packet_is_a_warning():
    """MySQL 5.7's default is 4 MiB."""
    found = checks(*ENOUGH, packet=4 << 20)[-1]
    assert (found.passes, found.stops) == (False, False)
    assert "67108864" in found.fix


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (SQL_MODE.replace("STRICT_TRANS_TABLES,", ""), "lacks STRICT_TRANS_TABLES"),
        (f"{SQL_MODE},ANSI_QUOTES", "has ANSI_QUOTES"),
        ("NO_BACKSLASH_ESCAPES", "lacks ALLOW_INVALID_DATES, NO_AUTO_VALUE_ON_ZERO, NO_ENGINE_SUBSTITUTION, STRICT_TR"),
    ],
)
def test_a_session_in_another_sql_mode_stops(mode, said):
    """A proxy or an init_connect may change it; modes that only make the server stricter elsewhere are accepted."""
    (found,) = [check for check in checks(*ENOUGH, sql_mode=mode) if check.stops]
    assert found.name == "sql_mode"
    assert said in found.message
    assert all(check.passes for check in checks(*ENOUGH, sql_mode=f"{SQL_MODE},ERROR_FOR_DIVISION_BY_ZERO"))


def test_a_session_in_another_character_set_stops():
    """A server with skip-character-set-client-handshake ignores the requested character set."""
    (found,) = [check for check in checks(*ENOUGH, charsets=("latin1", "latin1", "utf8mb4")) if check.stops]
    assert (found.name, "latin1" in found.message) == ("session_charset", True)
