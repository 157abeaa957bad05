"""The stages' records, created from the spec."""

from datetime import timedelta

import pytest

from dmdelta.config import MetaConfig, PurgeConfig, SourceConfig
from dmdelta.engine.task.mapping import endpoint_of, purging_of, start_of
from dmdelta.source.relay.relay_task import StartAfter, StartAt, StartEdge

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
