"""The stages' records, created from the spec."""

from datetime import timedelta

import pytest

from dmdelta.config import MetaConfig, PurgeConfig, SinkConfig, SourceConfig, TaskSpec
from dmdelta.engine.task.mapping import (
    endpoint_of,
    flavor_of_source,
    purging_of,
    reading_of,
    relay_task,
    sinks_passing_rows,
    start_of,
    target_server,
)
from dmdelta.source.relay.relay_task import StartAfter, StartAt, StartEdge
from tests.support.changes import Log

SERVER = {"source-id": "s1", "host": "db", "user": "repl", "password": "secret"}


def source(**changes):
    given = {**SERVER, **changes}
    return SourceConfig.model_validate({name: value for name, value in given.items() if value is not None})


def test_the_endpoint_of_a_server():
    """With the spec's port, flavor and server ID, or their defaults."""
    plain = endpoint_of(source())
    assert plain is not None
    assert (plain.host, plain.port, plain.user, plain.password) == ("db", 3306, "repl", "secret")
    assert (plain.tls, plain.flavor, plain.server_id) == (None, None, source().server_id)
    chosen = endpoint_of(source(port=3307, flavor="mariadb", **{"server-id": 77}))
    assert chosen is not None
    assert (chosen.port, chosen.flavor, chosen.server_id) == (3307, "mariadb", 77)


def test_tls_of_a_server():
    secured = endpoint_of(source(security={"ssl-ca": "/ca.pem"}))
    assert secured is not None
    assert secured.tls is not None


def test_an_archive_has_no_endpoint(tmp_path):
    archive = SourceConfig.model_validate({"source-id": "s1", "binlog-dir": str(tmp_path)})
    assert endpoint_of(archive) is None


@pytest.mark.parametrize(
    ("meta", "start"),
    [
        (None, StartEdge.OLDEST),
        ({"binlog-name": "binlog.000003", "binlog-pos": 154}, StartAt("binlog.000003", 154)),
        ({"binlog-gtid": "0-1-7"}, StartAfter("0-1-7")),
    ],
)
def test_where_a_first_start_begins(meta, start):
    """It begins at the spec's `meta`, or at the oldest file."""
    assert start_of(None if meta is None else MetaConfig.model_validate(meta)) == start


def test_the_free_space_is_given_in_gib():
    policy = purging_of(PurgeConfig.model_validate({"expires": "48h", "remain-space": 15}))
    assert (policy.expires, policy.remain_space) == (timedelta(hours=48), 15 * 2**30)


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_the_flavor_in_the_spec_needs_no_server(flavor):
    """It is not asked, so it need not run."""
    assert flavor_of_source(source(flavor=flavor)) == flavor


@pytest.mark.parametrize(("version", "flavor"), [("8.0.36", "mysql"), ("10.11.6-MariaDB-log", "mariadb")])
def test_the_flavor_of_an_archive_is_that_of_its_log(tmp_path, version, flavor):
    """The spec need not set it."""
    (tmp_path / "binlog.000001").write_bytes(Log(version).data)
    archive = SourceConfig.model_validate({"source-id": "s1", "binlog-dir": str(tmp_path)})
    assert flavor_of_source(archive) == flavor


def spec(**options):
    document = {"name": "shop", "sources": [SERVER], "lakehouse": {"root": "/lake"}, **options}
    return TaskSpec.model_validate(document)


@pytest.mark.parametrize("until_caught_up", [False, True])
def test_the_task_of_a_relay(until_caught_up):
    """Its folder is in the lakehouse unless the source has its own."""
    meta = {"binlog-name": "binlog.000003", "binlog-pos": 154}
    for changes, folder in (({}, "/lake/relay/s1"), ({"relay": {"dir": "/fast"}}, "/fast/s1")):
        found = spec(sources=[{**SERVER, "meta": meta, **changes}])
        task = relay_task(found, found.sources[0], until_caught_up=until_caught_up)
        assert (str(task.folder), task.start) == (folder, StartAt("binlog.000003", 154))
        assert (task.endpoint, task.binlog_dir) == (endpoint_of(found.sources[0]), None)
        assert task.until_caught_up is until_caught_up


@pytest.mark.parametrize(
    ("options", "loads", "together"),
    [
        ({"task-mode": "all"}, True, False),
        ({"task-mode": "all", "snapshot": {"consistency": "snapshot"}}, True, True),
        ({"task-mode": "incremental", "snapshot": {"consistency": "snapshot"}}, False, False),
    ],
)
def test_how_tables_are_read_for_a_full_load(monkeypatch, options, loads, together):
    """As many chunks at once as Spark has cores; a task that only follows the log reads none."""
    monkeypatch.setenv("SPARK_MASTER", "local[3]")
    reading = reading_of(spec(**options), spec(**options).sources[0])
    assert (reading.loads, reading.together, reading.at_once) == (loads, together, 3 if loads else 0)


@pytest.mark.parametrize(("names", "alone"), [(["s1"], True), (["s1", "s2"], False)])
def test_the_only_source_of_a_task_has_all_of_its_tables(names, alone):
    """With several sources, a table that is not visible may be in another one."""
    found = spec(**{"task-mode": "all"}, sources=[{**SERVER, "source-id": name} for name in names])
    assert {reading_of(found, each).alone for each in found.sources} == {alone}


TARGET = {"kind": "mysql", "host": "target", "user": "w", "password": "secret"}


def test_the_server_that_a_sink_writes_to():
    """With the spec's options, or their defaults."""
    plain = target_server(SinkConfig.model_validate(TARGET))
    assert (plain.host, plain.port, plain.user, plain.password) == ("target", 3306, "w", "secret")
    assert (plain.tidb, plain.foreign_key_checks, plain.tls, plain.session) == (False, False, None, ())
    options = {"kind": "tidb", "port": 4000, "foreign-key-checks": True, "session": {"innodb_lock_wait_timeout": 10}}
    chosen = target_server(SinkConfig.model_validate({**TARGET, **options, "security": {"ssl-ca": "/ca.pem"}}))
    assert (chosen.tidb, chosen.port, chosen.foreign_key_checks) == (True, 4000, True)
    assert chosen.session == (("innodb_lock_wait_timeout", 10),)
    assert chosen.tls is not None


@pytest.mark.parametrize(
    ("options", "passing"),
    [
        ({}, False),
        ({"sink": TARGET}, False),
        ({"quality": {"sink": "all"}}, False),
        ({"sink": TARGET, "quality": {"sink": "all"}}, False),
        ({"sink": TARGET, "quality": {"sink": "passing"}}, True),
    ],
)
def test_quarantined_rows_are_kept_out_of_the_target_if_configured(options, passing):
    """By default the target has all rows."""
    assert sinks_passing_rows(spec(**options)) is passing
