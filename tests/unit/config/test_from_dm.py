"""Converting DM's files: the result is a valid spec, and everything that is dropped is reported."""

from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.config.from_dm import spec_from_dm
from dmdelta.errors import ConfigError

TASK = """
name: shards
task-mode: all
is-sharding: true
meta-schema: meta_of_dm
timezone: "+02:00"
enable-heartbeat: true
online-ddl-scheme: gh-ost
ignore-checking-items: [auto_increment_ID]
target-database: {host: tidb.example, port: 4000, user: dm, password: secret, session: {tidb_retry_limit: "10", sql_mode: ""}}
mysql-instances:
  - source-id: east-1
    meta: {binlog-name: mysql-bin.000001, binlog-pos: 4, binlog-gtid: ""}
    route-rules: [by-schema]
    filter-rules: [no-drops]
    block-allow-list: shop
    mydumper-config-name: global
    syncer-config-name: fast
    syncer-thread: 32
    validator-config-name: checked
  - source-id: west-2
    route-rules: [by-schema]
    black-white-list: shop
    validator-config-name: checked
    loader: {pool-size: 8}
    syncer-config-name: fast
block-allow-list:
  shop: {do-dbs: ["~^shop_[0-9]+$"], ignore-tables: [{db-name: "*", tbl-name: "tmp_*"}]}
routes:
  by-schema: {schema-pattern: "shop_*", target-schema: shop}
filters:
  no-drops: {schema-pattern: "*", events: [drop table], action: Ignore}
mydumpers: {global: {threads: 4}}
loaders: {global: {pool-size: 16}}
syncers:
  fast: {worker-count: 8, batch: 200, compact: true, queue-size: 99, checkpoint-flush-interval: 10, safe-mode: false}
validators: {checked: {mode: full, row-error-delay: 1h, worker-count: 4, batch-query-size: 50}}
unheard-of: 1
"""
EAST = """
source-id: east-1
server-id: 101
flavor: mysql
enable-gtid: true
relay-dir: /relay/east
from: {host: east.example, port: 3307, user: dm, password: 9m8cipher, max-allowed-packet: 1, security: {ssl-ca: /ca.pem}}
purge: {interval: 3600, expires: 48, remain-space: 20}
checker: {check-enable: true}
"""
WEST = """
source-id: west-2
from: {host: west.example, user: dm, password: other}
filters:
  - {schema-pattern: "*", events: [truncate table], action: Error}
"""
ENVIRONMENT = {"EAST_1_PASSWORD": "a", "WEST_2_PASSWORD": "b", "SINK_PASSWORD": "c"}


def imported(task=TASK, sources=(EAST, WEST)):
    return spec_from_dm(yaml.safe_load(task), [yaml.safe_load(source) for source in sources], "/lake")


def test_the_result_is_a_valid_spec(tmp_path):
    """It loads, and has the settings of DM's files."""
    file = tmp_path / "task.yml"
    file.write_text(yaml.safe_dump(imported().spec))
    spec = load_spec(file, ENVIRONMENT)
    assert (spec.name, spec.task_mode, spec.shard_mode, spec.online_ddl) == ("shards", "all", "pessimistic", True)
    east, west = spec.sources
    assert (east.host, east.port, east.server_id, east.flavor) == ("east.example", 3307, 101, "mysql")
    assert east.relay.dir == "/relay/east"
    assert (east.relay.purge.expires.total_seconds(), east.relay.purge.remain_space) == (48 * 3600, 20)
    assert east.security.ssl_ca == "/ca.pem"
    assert east.password.get_secret_value() == "a"
    assert (east.route_rules, east.filter_rules) == (("by-schema",), ("no-drops",))
    assert west.filter_rules == ("west-2-1",)
    assert west.meta is None
    assert spec.filters["west-2-1"].events == ("truncate table",)
    assert spec.block_allow_list.do_dbs == ("~^shop_[0-9]+$",)
    assert spec.syncer.checkpoint_flush_interval.total_seconds() == 10
    assert (spec.sink.kind, spec.sink.host, spec.sink.port) == ("tidb", "tidb.example", 4000)
    assert (spec.sink.worker_count, spec.sink.batch, spec.sink.compact) == (32, 200, True)
    assert spec.sink.metadata == "meta_of_dm"
    assert spec.sink.session == {"tidb_retry_limit": "10"}
    assert (spec.validator.mode, spec.validator.row_error_delay.total_seconds()) == ("full", 3600)


def test_dropped_keys_are_reported():
    """Every key that is not in the spec is listed once, with the reason; secrets appear in neither."""
    found = imported()
    assert sorted(remark.key for remark in found.remarks) == [
        "east-1.checker",
        "east-1.enable-gtid",
        "east-1.from.max-allowed-packet",
        "east-1.from.password",
        "east-1.purge.interval",
        "enable-heartbeat",
        "loaders",
        "mydumpers",
        "mysql-instances[0].meta",
        "mysql-instances[0].mydumper-config-name",
        "mysql-instances[1].loader",
        "syncers",
        "syncers.queue-size",
        "target-database",
        "target-database.password",
        "target-database.session.sql_mode",
        "timezone",
        "unheard-of",
        "validators.batch-query-size",
        "validators.worker-count",
        "west-2.filters",
        "west-2.from.password",
    ]
    text = yaml.safe_dump(found.spec) + str(found.remarks)
    assert not [secret for secret in ("secret", "9m8cipher", "other'") if secret in text]


INCREMENTAL = TASK.replace("task-mode: all", "task-mode: incremental")
META = 'meta: {binlog-name: mysql-bin.000001, binlog-pos: 4, binlog-gtid: ""}'
FILE = {"binlog-name": "mysql-bin.000001", "binlog-pos": 4}
GTIDS = {"binlog-gtid": "a:1-5"}


@pytest.mark.parametrize(
    ("meta", "enabled", "converted", "ignored"),
    [
        (META, "true", FILE, ()),
        (META.replace('""', "'a:1-5'"), "true", GTIDS, ["binlog-name"]),
        (META.replace('""', "'a:1-5'"), "false", FILE, ["binlog-gtid"]),
        ("meta: {binlog-gtid: 'a:1-5'}", "false", GTIDS, ()),
        ("meta: {binlog-name: mysql-bin.000001, binlog-pos: 0}", "true", {"binlog-name": "mysql-bin.000001"}, ()),
        ("meta: {binlog-name: mysql-bin.000001, unknown: 1}", "true", {"binlog-name": "mysql-bin.000001"}, ["unknown"]),
    ],
)
def test_a_position_is_the_one_where_dm_starts(tmp_path, meta, enabled, converted, ignored):
    """DM's row of a checkpoint has a file and a GTID set, a spec has one of them; the other one is reported."""
    east = EAST.replace("enable-gtid: true", f"enable-gtid: {enabled}")
    found = imported(INCREMENTAL.replace(META, meta), (east, WEST))
    assert found.spec["sources"][0]["meta"] == converted
    remarks = [remark.key for remark in found.remarks if ".meta" in remark.key]
    assert remarks == [f"mysql-instances[0].meta.{key}" for key in ignored]
    file = tmp_path / "task.yml"
    file.write_text(yaml.safe_dump(found.spec))
    assert load_spec(file, ENVIRONMENT).sources[0].meta is not None


@pytest.mark.parametrize("key", ["enable", "enable-relay"])
def test_settings_of_a_source_without_a_counterpart_are_reported(key):
    """A source that DM does not run is enabled in the spec."""
    found = spec_from_dm(SMALL, [{**SOURCE, key: False}], "/lake")
    assert [(remark.key, remark.why.split()[-1]) for remark in found.remarks] == [(f"w.{key}", "enabled")]


def test_a_certificate_without_a_ca_is_reported():
    """The connection would not be encrypted."""
    security = {"ssl-cert": "c", "ssl-key": "k"}
    found = spec_from_dm(SMALL, [{**SOURCE, "from": {**SOURCE["from"], "security": security}}], "/lake")
    assert [remark.key for remark in found.remarks] == ["w.from.security.ssl-cert", "w.from.security.ssl-key"]
    assert "security" not in found.spec["sources"][0]


def test_an_instance_without_rules_gets_an_empty_list():
    """An instance without rule names gets an empty list: without the list, all rules would apply."""
    found = imported(
        TASK.replace("filter-rules: [no-drops]", "expression-filters: []"), (EAST, WEST.split("filters", maxsplit=1)[0])
    )
    assert [source["filter-rules"] for source in found.spec["sources"]] == [[], []]
    assert "expression-filters" not in found.spec["sources"][0]


def test_a_source_with_filters_leaves_the_others_without():
    """Of a task that has no filters of its own."""
    found = imported(TASK.replace("    filter-rules: [no-drops]\n", "").replace("filters:\n  no-drops:", "unknown:"))
    assert [source["filter-rules"] for source in found.spec["sources"]] == [[], ["west-2-1"]]
    assert list(found.spec["filters"]) == ["west-2-1"]


SMALL = {"name": "n", "task-mode": "all", "mysql-instances": [{"source-id": "w"}]}
SOURCE = {"source-id": "w", "from": {"host": "h", "user": "u"}}


@pytest.mark.parametrize(
    ("task", "source", "spec"),
    [
        ({}, {}, {}),
        ({}, {"flavor": "unknown"}, {}),
        ({}, {"from": {"host": "h", "user": "u", "security": {"ssl-cert": "c"}}}, {}),
        ({"mysql-instances": []}, {}, {"sources": []}),
        ({"block-allow-list": {"unused": {"do-dbs": ["a"]}}}, {}, {}),
        ({"is-sharding": False, "online-ddl": False}, {}, {"online-ddl": False}),
        ({"shard-mode": "optimistic", "is-sharding": True}, {}, {"shard-mode": "optimistic"}),
        ({"target-database": {"host": "t"}}, {}, {"sink": {"kind": "tidb", "host": "t"}}),
    ],
)
def test_what_dms_files_do_not_set_is_not_in_the_spec(task, source, spec):
    """The spec's own defaults apply."""
    smallest = {
        "name": "n",
        "task-mode": "all",
        "sources": [{"source-id": "w", "host": "h", "user": "u"}],
        "lakehouse": {"root": "/lake"},
    }
    assert spec_from_dm({**SMALL, **task}, [{**SOURCE, **source}], "/lake").spec == {**smallest, **spec}


def test_a_task_of_one_instance_has_its_block_allow_list():
    """Not another one of the file."""
    lists = {"unused": {"do-dbs": ["a"]}, "used": {"do-dbs": ["b"]}}
    instance = {"source-id": "w", "block-allow-list": "used"}
    task = {**SMALL, "mysql-instances": [instance], "block-allow-list": lists}
    assert spec_from_dm(task, [SOURCE], "/lake").spec["block-allow-list"] == {"do-dbs": ["b"]}


@pytest.mark.parametrize(
    ("keys", "settings"),
    [
        ({"syncer": {"safe-mode": True}}, {"safe-mode": True}),
        ({"syncer-config-name": "one"}, {"safe-mode": False, "checkpoint-flush-interval": 9}),
        ({"syncer-config-name": "one", "syncer": {"safe-mode": True}}, {"safe-mode": True, "checkpoint-flush-interval": 9}),
        ({"syncer-config-name": "unknown"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_an_instance_overrides_the_settings_that_it_names(keys, settings):
    """Key by key."""
    syncers = {"one": {"safe-mode": False, "checkpoint-flush-interval": 9}}
    task = {**SMALL, "syncers": syncers, "mysql-instances": [{"source-id": "w", **keys}]}
    assert spec_from_dm(task, [SOURCE], "/lake").spec.get("syncer") == settings


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("task-mode: all", "task-mode: dump", "task-mode 'dump'"),
        ("source-id: west-2", "source-id: north-3", "no source file for 'north-3'"),
        ("    black-white-list: shop\n", "", "different block-allow-lists"),
        ("block-allow-list: shop", "block-allow-list: other", "block-allow-list 'other' does not exist"),
    ],
)
def test_a_task_that_one_spec_cannot_express_is_refused(old, new, message):
    """The error is raised before anything is written."""
    with pytest.raises(ConfigError, match=message):
        imported(TASK.replace(old, new))


def test_the_command_writes_the_spec_and_reports_the_rest(tmp_path: Path, capsys):
    """The spec goes to stdout or to a new file, the remarks to stderr."""
    files = [tmp_path / name for name in ("task.yaml", "east.yaml", "west.yaml")]
    for file, text in zip(files, (TASK, EAST, WEST), strict=True):
        file.write_text(text)
    command = ["import-dm", *map(str, files), "--lakehouse", "/lake"]
    assert execute(command) == 0
    shown = capsys.readouterr()
    assert yaml.safe_load(shown.out) == imported().spec
    assert "timezone: not needed, because Delta stores TIMESTAMPs" in shown.err
    output = tmp_path / "spec.yml"
    assert execute([*command, "-o", str(output)]) == 0
    assert load_spec(output, ENVIRONMENT).name == "shards"
    assert execute([*command, "-o", str(output)]) == 2
