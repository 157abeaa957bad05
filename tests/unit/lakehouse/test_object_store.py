"""Tables in an object store, read with delta-rs over the S3 protocol, equal those in a folder."""

import pytest

from dmdelta.errors import UnsupportedTable
from dmdelta.lakehouse.access.commit_log import newest_own_commit
from dmdelta.lakehouse.access.deferred_session import deferred_session
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from dmdelta.lakehouse.access.delta_rs.remote_table import RemoteTable
from dmdelta.lakehouse.access.interface import NewestBy, one_of
from dmdelta.lakehouse.access.object_store import ObjectMetadata, object_table, plan_object_place
from tests.support.commit_tags import tag
from tests.support.object_store import serving_objects
from tests.support.servers.server import free_port

SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"string","nullable":true,"metadata":{}},'
    '{"name":"n","type":"long","nullable":true,"metadata":{}}]}'
)
PLACE = "delta.`s3://lake/dm_meta/t`"
KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.fixture
def local(tmp_path):
    """A table in a folder, below the one that is served as a bucket."""
    table = LocalTable("t", tmp_path / "dm_meta" / "t")
    table.create(SCHEMA, {"dmdelta.task": "t"})
    table.append([{"id": "a", "n": 1}, {"id": "b", "n": 5}], tag(1))
    table.append([{"id": "a", "n": 2}], None)
    return table


@pytest.fixture
def remote(local, tmp_path, monkeypatch):
    """The same table in the bucket."""
    with serving_objects(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield object_table(deferred_session(lambda: pytest.fail("a JVM is started")), PLACE)


def test_a_table_is_read_as_from_a_folder(local, remote):
    assert remote.uri == "s3://lake/dm_meta/t"
    assert [(one.version, one.user_metadata) for one in remote.commits(None)] == [
        (one.version, one.user_metadata) for one in local.commits(None)
    ]
    assert [one.version for one in remote.commits(2)] == [2, 1]
    assert newest_own_commit(remote.commits, "app").tag == tag(1)
    assert remote.newest(NewestBy(("id",), "n")) == local.newest(NewestBy(("id",), "n"))
    assert remote.rows([one_of("id", "a")], ["n"]) == local.rows([one_of("id", "a")], ["n"])
    assert remote.properties() == local.properties()
    assert [remote.newest_in(version, "n") for version in (0, 1, 2, 9)] == [None, 5, 2, None]


def test_an_absent_table_has_nothing(remote):
    absent = RemoteTable("absent", "s3://lake/dm_meta/absent", remote.options)
    assert (absent.commits(None), absent.newest(NewestBy((), "n")), absent.rows()) == ([], [], [])
    assert absent.properties() is None


def test_spark_reads_what_delta_rs_cannot(remote, monkeypatch):
    """Here, because no server listens at the address. Spark always writes."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(UnsupportedTable, match="reading"):
        remote.properties()

    class BySpark:
        """Records calls."""

        def __getattr__(self, name):
            return lambda *_: name

    table = ObjectMetadata(remote, BySpark())
    assert (table.commits(1), table.newest(NewestBy((), "n")), table.rows()) == ("commits", "newest", "rows")
    assert (table.append([], None), table.compact()) == ("append", "compact")


def test_a_started_session_reads_without_delta_rs(remote):
    session = deferred_session(object)
    assert object_table(session, PLACE) == remote
    session.started()
    assert object_table(session, PLACE) is None
    assert object_table(object(), PLACE) is None


@pytest.mark.parametrize(
    ("place", "environment", "uri"),
    [
        ("delta.`s3://lake/a/b`", KEYS, "s3://lake/a/b"),
        ("delta.`s3a://lake/a`", {"AWS_PROFILE": "lake"}, "s3a://lake/a"),
        ("delta.`gs://lake/a`", {"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}, "gs://lake/a"),
        (
            "delta.`abfss://c@account.dfs.core.windows.net/a`",
            {"AZURE_CLIENT_ID": "x"},
            "abfss://c@account.dfs.core.windows.net/a",
        ),
        ("delta.`s3://lake/a`", {}, None),
        ("delta.`s3://lake/a`", {"AWS_ACCESS_KEY_ID": ""}, None),
        ("delta.`gs://lake/a`", KEYS, None),
        ("delta.`hdfs://lake/a`", KEYS, None),
        ("delta.`s3://lake/a?x=1`", KEYS, None),
        ("delta.`/lake/a`", KEYS, None),
        ("`catalog`.`schema`.`table`", KEYS, None),
    ],
)
def test_delta_rs_reads_where_the_environment_has_credentials(place, environment, uri):
    planned = plan_object_place(place, environment)
    assert (planned.uri if planned is not None else None) == uri


def test_plain_http_has_to_be_allowed():
    """Only for an endpoint that the environment sets so."""
    https = plan_object_place(PLACE, {**KEYS, "AWS_ENDPOINT_URL": "https://minio"})
    http = plan_object_place(PLACE, {**KEYS, "AWS_ENDPOINT_URL": "http://minio"})
    assert ("aws_allow_http" in https.options, http.options["aws_allow_http"]) == (False, "true")
