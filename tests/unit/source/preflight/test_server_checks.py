"""Preflight's findings for a server's settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.segments import EpochBegin, begin_epoch
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.server_checks import Intent, SourceFacts, check_relay, findings_of, retention_seconds
from dmdelta.source.relay.purge import Known
from dmdelta.source.relay.reconnect import RelayState
from dmdelta.source.relay.relay_task import RelayTask, StartAfter, StartAt
from dmdelta.source.server import ServerIdentity, ServerLog

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
GOOD = SourceFacts(
    ServerIdentity("mysql", (8, 0, 31), A, 1),
    {
        "log_bin": "ON",
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_row_metadata": "FULL",
        "binlog_row_value_options": "",
        "gtid_mode": "ON",
        "binlog_expire_logs_seconds": "2592000",
    },
    ("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `d`@`%`",),
    (),
    ServerLog(
        A, "mysql", {"binlog.000003": 900}, parse_gtid_set(f"{A}:1-9", "mysql"), parse_gtid_set(f"{A}:1-3", "mysql")
    ),
)


def finding(facts: SourceFacts, name: str, intent: Intent | None = None) -> Finding:
    return next(found for found in findings_of(facts, intent or Intent()) if found.name == name)


def with_variables(**changes: str | None) -> SourceFacts:
    merged = {**GOOD.variables, **changes}
    return replace(GOOD, variables={name: value for name, value in merged.items() if value is not None})


@pytest.mark.parametrize(
    ("variables", "is_replica", "level"),
    [
        ({"log_replica_updates": "ON", "log_slave_updates": "ON"}, None, Level.PASS),
        ({"log_slave_updates": "OFF"}, False, Level.PASS),
        ({"log_slave_updates": "OFF"}, True, Level.FAIL),
        ({"log_slave_updates": "OFF"}, None, Level.WARN),
        ({"log_replica_updates": "OFF", "log_slave_updates": "OFF"}, True, Level.FAIL),
    ],
)
def test_a_replica_logs_what_it_receives(
    *, variables: dict[str, str | None], is_replica: bool | None, level: Level
) -> None:
    """Otherwise these changes would be missing; if the account may not see whether it is one, the operator decides."""
    found = finding(replace(with_variables(**variables), is_replica=is_replica), "log_replica_updates")
    assert found.level is level
    assert ("--log-" in found.fix) is (level is not Level.PASS)


def test_a_good_server_passes_everything() -> None:
    """There are no warnings."""
    assert {found.level for found in findings_of(GOOD, Intent())} == {Level.PASS}


@pytest.mark.parametrize(
    ("name", "level", "variables", "fix"),
    [
        ("log_bin", Level.FAIL, {"log_bin": "OFF"}, "--log-bin"),
        ("binlog_format", Level.FAIL, {"binlog_format": "STATEMENT"}, "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_format", Level.FAIL, {"binlog_format": "MIXED"}, "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_row_image", Level.WARN, {"binlog_row_image": "MINIMAL"}, "SET GLOBAL binlog_row_image = 'FULL'"),
        ("binlog_row_image", Level.WARN, {"binlog_row_image": "NOBLOB"}, "SET GLOBAL binlog_row_image = 'FULL'"),
        (
            "binlog_row_metadata",
            Level.WARN,
            {"binlog_row_metadata": "MINIMAL"},
            "SET GLOBAL binlog_row_metadata = 'FULL'",
        ),
        ("binlog_row_metadata", Level.WARN, {"binlog_row_metadata": None}, "MySQL 8.0.1"),
        ("binlog_row_value_options", Level.PASS, {"binlog_row_value_options": "PARTIAL_JSON"}, ""),
        (
            "binlog_row_value_options",
            Level.FAIL,
            {"binlog_row_value_options": "PARTIAL_JSON", "binlog_row_image": "MINIMAL"},
            "SET GLOBAL binlog_row_value_options = ''",
        ),
        ("gtid_mode", Level.WARN, {"gtid_mode": "OFF"}, "gtid_mode"),
        ("retention", Level.WARN, {"binlog_expire_logs_seconds": "3600"}, "604800"),
        ("retention", Level.PASS, {"binlog_expire_logs_seconds": "0"}, ""),
    ],
)
def test_each_setting_has_its_finding(name: str, level: Level, variables: dict[str, str | None], fix: str) -> None:
    """Level and fix, setting by setting."""
    found = finding(with_variables(**variables), name)
    assert found.level is level
    assert fix in found.fix
    assert bool(found.fix) == (level is not Level.PASS)


@pytest.mark.parametrize(
    ("grant", "missing"),
    [
        ("GRANT SELECT, REPLICATION CLIENT ON *.* TO `d`@`%`", "privilege replication slave"),
        ("GRANT SELECT, REPLICATION SLAVE ON *.* TO `d`@`%`", "privilege replication client"),
        ("GRANT USAGE ON *.* TO `d`@`%`", "privilege replication slave"),
        ("GRANT REPLICATION SLAVE ON `x`.* TO `d`@`%`", "privilege replication slave"),
    ],
)
def test_missing_privileges_fail(grant: str, missing: str) -> None:
    """The fix is the GRANT."""
    found = finding(replace(GOOD, grants=(grant,)), missing)
    assert (found.level, found.fix[:17]) == (Level.FAIL, "GRANT REPLICATION")


def test_all_privileges_are_enough() -> None:
    """For example those of an administrator's account."""
    facts = replace(GOOD, grants=("GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION",))
    assert {found.level for found in findings_of(facts, Intent())} == {Level.PASS}


def test_mariadb_s_names_of_privileges_are_known() -> None:
    """BINLOG MONITOR is the newer name of REPLICATION CLIENT."""
    facts = replace(
        GOOD,
        server=ServerIdentity("mariadb", (10, 11, 6), "mariadb-1", 1),
        grants=("GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `d`@`%` IDENTIFIED BY PASSWORD '*'",),
    )
    assert {found.level for found in findings_of(facts, Intent())} == {Level.PASS}


def test_select_is_needed_where_the_log_has_no_names() -> None:
    """A warning if the log contains the structures, a failure if they are read from information_schema."""
    grants = ("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `d`@`%`",)
    assert finding(replace(GOOD, grants=grants), "privilege select").level is Level.WARN
    bare = replace(with_variables(binlog_row_metadata="MINIMAL"), grants=grants)
    assert finding(bare, "privilege select").level is Level.FAIL


@pytest.mark.parametrize(("ours", "level"), [(None, Level.PASS), (1, Level.FAIL), (7, Level.WARN), (8, Level.PASS)])
def test_a_server_id_in_use_is_named(ours: int | None, level: Level) -> None:
    """The server's own fails, a connected replica's warns."""
    facts = replace(GOOD, replicas=(7,))
    assert finding(facts, "server_id", Intent(server_id=ours)).level is level


@pytest.mark.parametrize(("hours", "level"), [(1, Level.PASS), (400, Level.WARN), (800, Level.FAIL)])
def test_retention_is_compared_with_the_lag(hours: float, level: Level) -> None:
    """The server keeps 720 hours."""
    assert finding(GOOD, "retention", Intent(lag_seconds=hours * 3600)).level is level


@pytest.mark.parametrize(
    ("start", "level"),
    [
        (StartAt("binlog.000003", 900), Level.PASS),
        (StartAt("binlog.000003", 901), Level.FAIL),
        (StartAt("binlog.000002"), Level.FAIL),
        (StartAfter(f"{A}:1-3"), Level.PASS),
        (StartAfter(f"{A}:1-2"), Level.FAIL),
    ],
)
def test_a_purged_start_fails(start: StartAt | StartAfter, level: Level) -> None:
    """By file and offset, and by GTID set."""
    assert finding(GOOD, "start position", Intent(start=start)).level is level


@pytest.mark.parametrize(
    ("relay", "level", "said"),
    [
        (RelayState(A, 1, "binlog.000003", 900, None), Level.PASS, "binlog.000003:900"),
        (RelayState(A, 1, "binlog.000002", 900, None, "binlog.000003"), Level.PASS, "binlog.000002:900"),
        (RelayState(A, 1, "binlog.000002", 900, None), Level.FAIL, "no longer has binlog.000002"),
        (RelayState(B, 1, "b.000009", 4, None, gtid_set=parse_gtid_set(f"{A}:1-4", "mysql")), Level.PASS, "can resume"),
        (RelayState(B, 1, "b.000009", 4, None, gtid_set=parse_gtid_set(f"{A}:1-2", "mysql")), Level.FAIL, f"{A}:3"),
    ],
)
def test_a_relay_that_cannot_resume_fails(relay: RelayState, level: Level, said: str) -> None:
    """Purged files and another server give the same decision as in the relay."""
    found = finding(GOOD, "start position", Intent(start=relay))
    assert found.level is level
    assert said in found.message


@pytest.mark.parametrize("said", ["arrive as NULL, not as their DEFAULT", "NOT NULL ones stop the task"])
def test_the_warning_of_minimal_images_says_what_is_lost(said: str) -> None:
    """No later error reports the nullable columns."""
    assert said in finding(with_variables(binlog_row_image="MINIMAL"), "binlog_row_image").message


def test_the_old_retention_variable_is_in_days() -> None:
    """5.7 keeps binlogs for expire_logs_days."""
    assert retention_seconds({"expire_logs_days": "7"}) == 7 * 86400


def test_a_purged_folder_continues_after_what_has_landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another server, also if nothing in the folder says so. On the same server it is not looked up."""
    monkeypatch.setattr("dmdelta.source.preflight.server_checks.source_facts", lambda _: GOOD)
    landed: Known | None = Known(Position(1, "binlog.000003", 90), f"{A}:1-5")
    looks = 0

    def look() -> Known | None:
        nonlocal looks
        looks += 1
        return landed

    def start_position(server_uuid: str) -> Level:
        (tmp_path / server_uuid).mkdir(exist_ok=True)
        begin_epoch(tmp_path / server_uuid, EpochBegin(server_uuid, 1, "mysql", "binlog.000003", 4, f"{A}:1-2"))
        findings = check_relay(None, RelayTask(server_uuid, str(tmp_path)), look)
        return next(found.level for found in findings if found.name == "start position")

    assert (start_position(A), looks) == (Level.PASS, 0)
    assert (start_position(B), looks) == (Level.PASS, 1)
    landed = None
    assert (start_position(B), looks) == (Level.FAIL, 2)
