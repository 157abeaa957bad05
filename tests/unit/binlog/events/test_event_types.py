"""The codes of events are those of the servers' source code."""

import pytest

from dmdelta.binlog.events.header import EventType, event_name

MYSQL = (
    "UNKNOWN START_V3 QUERY STOP ROTATE INTVAR LOAD SLAVE CREATE_FILE APPEND_BLOCK EXEC_LOAD DELETE_FILE NEW_LOAD RAND "
    "USER_VAR FORMAT_DESCRIPTION XID BEGIN_LOAD_QUERY EXECUTE_LOAD_QUERY TABLE_MAP PRE_GA_WRITE_ROWS "
    "PRE_GA_UPDATE_ROWS PRE_GA_DELETE_ROWS WRITE_ROWS_V1 UPDATE_ROWS_V1 DELETE_ROWS_V1 INCIDENT HEARTBEAT IGNORABLE "
    "ROWS_QUERY WRITE_ROWS UPDATE_ROWS DELETE_ROWS GTID ANONYMOUS_GTID PREVIOUS_GTIDS TRANSACTION_CONTEXT VIEW_CHANGE "
    "XA_PREPARE PARTIAL_UPDATE_ROWS TRANSACTION_PAYLOAD HEARTBEAT_V2 GTID_TAGGED"
)
"""From 0, in the order of mysql/binlog/event/binlog_event.h."""
MARIADB = (
    "MARIADB_ANNOTATE_ROWS MARIADB_BINLOG_CHECKPOINT MARIADB_GTID MARIADB_GTID_LIST MARIADB_START_ENCRYPTION "
    "MARIADB_QUERY_COMPRESSED MARIADB_WRITE_ROWS_COMPRESSED_V1 MARIADB_UPDATE_ROWS_COMPRESSED_V1 "
    "MARIADB_DELETE_ROWS_COMPRESSED_V1 MARIADB_WRITE_ROWS_COMPRESSED MARIADB_UPDATE_ROWS_COMPRESSED "
    "MARIADB_DELETE_ROWS_COMPRESSED"
)
"""From 160, in the order of sql/log_event.h."""


@pytest.mark.parametrize(("first", "names"), [(0, MYSQL), (160, MARIADB)])
def test_messages_name_an_event_by_its_code(first: int, names: str) -> None:
    """Every code has the name of its server's source code."""
    for code, name in enumerate(names.split(), first):
        assert (event_name(code), EventType[name]) == (name, code)


@pytest.mark.parametrize("code", [43, 159, 172, 255])
def test_a_code_without_a_name_is_a_number(code: int) -> None:
    """Codes of newer servers also have to be in messages."""
    assert event_name(code) == f"event type {code}"
