"""Loading a spec: the resulting values, and the error for each kind of mistake."""

from datetime import timedelta
from pathlib import Path

import pytest

from dmdelta.config import load_spec
from dmdelta.errors import ConfigError

GOOD = """\
name: shop
sources:
  - source-id: one
    host: db.example
    port: 3307
    user: dmdelta
    password: ${SHOP_PASSWORD}
    relay: {dir: relay}
    meta: {binlog-name: binlog.000042, binlog-pos: 154}
    security: {ssl-ca: certs/ca.pem}
  - source-id: two
    binlog-dir: ../archive
    meta: {binlog-name: binlog.000007}
block-allow-list:
  do-dbs: ["shop*"]
  ignore-tables:
    - db-name: shop
      tbl-name: "~^tmp_"
syncer:
  checkpoint-flush-interval: 1m30s
lakehouse:
  root: lake
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "spec.yml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str, **env: str) -> list[str]:
    """The lines of the ConfigError that `text` causes, without the path."""
    path = write(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_spec(path, env)
    return [line.removeprefix(f"{path}:") for line in caught.value.message.splitlines()]


def test_a_spec_loads_with_defaults_paths_and_secrets(tmp_path):
    """Every section has its types; relative paths are relative to the spec's folder; the secret comes from the
    environment."""
    spec = load_spec(write(tmp_path, GOOD), {"SHOP_PASSWORD": "s3cret"})
    server, archive = spec.sources
    assert (spec.name, spec.task_mode) == ("shop", "incremental")
    assert (server.host, server.port, server.flavor) == ("db.example", 3307, None)
    assert server.password.get_secret_value() == "s3cret"
    assert spec.relay_dir(server) == str(tmp_path / "relay")
    assert spec.relay_dir(archive) == str(tmp_path / "lake" / "relay")
    assert server.security.ssl_ca == str(tmp_path / "certs/ca.pem")
    assert (server.meta.binlog_name, server.meta.binlog_pos) == ("binlog.000042", 154)
    assert archive.binlog_dir == str(tmp_path.parent / "archive")
    assert spec.block_allow_list.ignore_tables[0].tbl_name == "~^tmp_"
    assert spec.syncer.checkpoint_flush_interval == timedelta(seconds=90)
    assert spec.syncer.safe_window == timedelta(minutes=3)
    assert (spec.lakehouse.root, spec.lakehouse.metadata) == (str(tmp_path / "lake"), "dm_meta")


def test_a_password_is_never_shown(tmp_path):
    """Neither the spec's text nor an error about a neighbouring key contains the password."""
    spec = load_spec(write(tmp_path, GOOD), {"SHOP_PASSWORD": "s3cret"})
    assert "s3cret" not in f"{spec!r} {spec.model_dump_json()}"
    assert not any("s3cret" in line for line in problems(tmp_path, GOOD.replace("3307", "x"), SHOP_PASSWORD="s3cret"))


@pytest.mark.parametrize(
    ("place", "instead", "problem"),
    [
        ("port: 3307", "prot: 3307", "5: unknown key 'sources[0].prot': did you mean 'port'?"),
        ("source-id: two", "source_id: two", "11: unknown key 'sources[1].source_id': did you mean 'source-id'?"),
        ("binlog-pos", "pos", "9: unknown key 'sources[0].meta.pos': did you mean 'binlog-pos'?"),
        ("      tbl-name", "      table", "18: unknown key 'block-allow-list.ignore-tables[0].table': did you mean"),
        ("lakehouse:", "zzz: 1\nlakehouse:", "21: unknown key 'zzz': known here: name, task-mode, sources,"),
        ("port: 3307", "port: many", "5: sources[0].port: Input should be a valid integer"),
        ("port: 3307", "port: 70000", "5: sources[0].port: Input should be less than or equal to 65535"),
        ("user: dmdelta", "user: 7", "6: sources[0].user: must be text: put it in quotes"),
        ("    user: dmdelta\n", "", "3: sources[0]: a source with host requires user"),
        ("host: db.example", "flavor: mysql", "3: sources[0]: a source requires exactly one of host and binlog-dir"),
        (
            "meta: {binlog-name: binlog.000007}",
            "port: 1",
            "11: sources[1]: a source with binlog-dir does not support: port",
        ),
        ("port: 3307", "flavor: oracle", "5: sources[0].flavor: Input should be 'mysql' or 'mariadb'"),
        ("source-id: two", "source-id: one", "2: sources: source-id 'one' occurs twice"),
        ("source-id: two", "source-id: a/b", "11: sources[1].source-id: String should match pattern"),
        ("binlog.000042", "binlog", "9: sources[0].meta: 'binlog' is not a binlog file name"),
        ("binlog-name: binlog.000042, ", "", "9: sources[0].meta: meta requires exactly one of binlog-name and"),
        (
            "binlog-name: binlog.000007",
            "binlog-gtid: 'a:1'",
            "11: sources[1]: an archive starts from a file: meta requires binlog-name",
        ),
        ("ssl-ca: certs/ca.pem", "ssl-ca: ca, ssl-key: k", "10: sources[0].security: ssl-cert and ssl-key must"),
        ("relay: {dir: relay}", "relay: {dir: 's3://b/x'}", "8: sources[0].relay.dir: must be a folder"),
        ("~^tmp_", "~(", "18: block-allow-list.ignore-tables[0].tbl-name: '~(' is not a regular expression"),
        ('"shop*"', "mysql", "15: block-allow-list.do-dbs[0]: 'mysql' is a system schema of the server"),
        ("1m30s", "fast", "20: syncer.checkpoint-flush-interval: a duration is written as 30s"),
        ("1m30s", "0s", "19: syncer: checkpoint-flush-interval must be longer than 0s"),
        ("1m30s", "-5", "20: syncer.checkpoint-flush-interval: a duration must not be negative"),
        ("1m30s", "true", "20: syncer.checkpoint-flush-interval: a duration is written as 30s"),
        ("root: lake", "catalog: main\n  root: lake", "21: lakehouse: lakehouse requires exactly one of"),
        ("name: shop\n", "name: 'shop:1'\n", "1: name: String should match pattern"),
        ("name: shop\n", "name: shop\ntask-mode: both\n", "2: task-mode: Input should be 'incremental'"),
        ("name: shop\n", "name: shop\ntask-mode: all\n", "1: source 'two' is an archive without tables to load"),
        ("name: shop\n", "name: shop\ntask-mode: full\n", "1: source 'one' has meta, so that nothing would be loaded"),
        ("name: shop\n", "", "1: name: is required"),
        ("lakehouse:\n  root: lake", "", "1: lakehouse: is required"),
    ],
)
def test_a_mistake_is_reported_with_line_key_and_advice(tmp_path, place, instead, problem):
    """Each kind of mistake results in one line with the file, the line, the key and advice."""
    assert place in GOOD
    found = problems(tmp_path, GOOD.replace(place, instead, 1), SHOP_PASSWORD="x")
    assert any(line.startswith(problem) for line in found), found


def test_all_mistakes_are_reported_at_once(tmp_path):
    """Two mistakes result in one error with two lines in file order."""
    found = problems(tmp_path, GOOD.replace("port:", "prot:").replace("root:", "rot:"), SHOP_PASSWORD="x")
    assert [line.split(":")[0] for line in found] == ["5", "22"]


def test_a_variable_that_is_not_set_is_named(tmp_path):
    """A reference to a missing environment variable names the variable, the key and the line."""
    assert problems(tmp_path, GOOD) == ["7: sources[0].password: the environment variable SHOP_PASSWORD is not set"]


def test_text_around_a_reference_is_literal(tmp_path):
    """Only a value that is exactly a reference is resolved, so a password may contain any characters."""
    spec = load_spec(write(tmp_path, GOOD.replace("${SHOP_PASSWORD}", "a${SHOP_PASSWORD}")), {})
    assert spec.sources[0].password.get_secret_value() == "a${SHOP_PASSWORD}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\nname: b\n", "2: 'name' is already set in line 1"),
        ("name: a\nsources: [\n", "3: "),
        ("name: a\nblock-allow-list: {do-dbs: [*]}\n", "2: "),
        ("- a\n", "1: a spec must be a mapping of keys"),
        ("", "1: a spec must be a mapping of keys"),
    ],
)
def test_a_file_that_is_not_a_spec_is_reported_with_its_line(tmp_path, text, problem):
    """YAML errors, duplicate keys and other documents are refused with the line."""
    assert problems(tmp_path, text)[0].startswith(problem)


def test_a_missing_file_hints_at_the_init_command(tmp_path):
    """If the spec does not exist, the hint is `dmdelta init`."""
    with pytest.raises(ConfigError, match="does not exist") as caught:
        load_spec(tmp_path / "none.yml")
    assert "dmdelta init" in (caught.value.hint or "")


def test_a_binary_file_is_refused(tmp_path):
    """A binary file is a ConfigError, not a traceback."""
    path = tmp_path / "spec.yml"
    path.write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(ConfigError, match="cannot read the spec"):
        load_spec(path)


def test_anchors_and_merge_keys_work(tmp_path):
    """Two sources can share keys with YAML's merge key."""
    text = GOOD.replace("- source-id: one", "- &first\n    source-id: one").replace(
        "block-allow-list:", "  - <<: *first\n    source-id: three\nblock-allow-list:"
    )
    spec = load_spec(write(tmp_path, text), {"SHOP_PASSWORD": "x"})
    assert [source.source_id for source in spec.sources] == ["one", "two", "three"]
    assert spec.sources[2].host == "db.example"


@pytest.mark.parametrize(
    ("written", "seconds"), [("30s", 30), ("1h2m3s", 3723), ("500ms", 0.5), ("1.5m", 90), ("45", 45)]
)
def test_durations_have_units(tmp_path, written, seconds):
    """Units combine; a bare number is in seconds, as in DM."""
    spec = load_spec(write(tmp_path, GOOD.replace("1m30s", written)), {"SHOP_PASSWORD": "x"})
    assert spec.syncer.checkpoint_flush_interval == timedelta(seconds=seconds)


@pytest.mark.parametrize("place", ["catalog: main", "root: 's3://bucket/lake'"])
def test_a_remote_lakehouse_requires_a_relay_folder(tmp_path, place):
    """Segments cannot be stored in a catalog or a bucket: the error names the source without a folder."""
    found = problems(tmp_path, GOOD.replace("root: lake", place), SHOP_PASSWORD="x")
    assert found == ["1: source 'two' requires relay.dir: the lakehouse is not a folder on this machine"]


def test_safe_mode_duration_overrides_the_default(tmp_path):
    """`safe-mode-duration: 0s` disables safe mode after a crash."""
    text = GOOD.replace("syncer:", "syncer:\n  safe-mode-duration: 0s")
    assert load_spec(write(tmp_path, text), {"SHOP_PASSWORD": "x"}).syncer.safe_window == timedelta(0)


SINK = "sink: {kind: mysql, host: t, user: u, SINK}\nquality: {schemas: schemas, QUALITY}\n"


@pytest.mark.parametrize(
    ("sink", "quality", "problem"),
    [
        ("session: {SQL_MODE: ''}", "sink: all", "the sink sets SQL_MODE itself: remove it"),
        ("session: {max_error_count: 64}", "sink: all", "the sink sets max_error_count itself: remove it"),
        ("session: {foreign_key_checks: 1}", "sink: all", "itself: use foreign-key-checks: true"),
        ("session: {'a b': 1}", "sink: all", "23: sink.session"),
        ("foreign-key-checks: true", "sink: passing", "1: quality.sink: passing keeps rows out that others refer to"),
        ("batch: 1", "sink: failing", "24: quality.sink: Input should be 'all' or 'passing'"),
    ],
)
def test_mistakes_of_the_sink(tmp_path, sink, quality, problem):
    """Session variables that belong to the sink, and a policy for quarantined rows that does not fit it."""
    text = GOOD + SINK.replace("SINK", sink).replace("QUALITY", quality)
    (found,) = problems(tmp_path, text, SHOP_PASSWORD="x")
    assert problem in found


def test_quarantined_rows_are_kept_out_of_a_sink_only(tmp_path):
    """The policy has no meaning without a sink; every row is the default."""
    (found,) = problems(tmp_path, GOOD + "quality: {sink: passing}\n", SHOP_PASSWORD="x")
    assert "quality.sink: passing requires a sink" in found
    text = GOOD + SINK.replace("SINK", "session: {lock_wait_timeout: 7, a: true, b: x}").replace(", QUALITY", "")
    spec = load_spec(write(tmp_path, text), {"SHOP_PASSWORD": "x"})
    assert spec.quality.sink == "all"
    assert spec.sink.session == {"lock_wait_timeout": 7, "a": True, "b": "x"}


def test_views_require_a_catalog(tmp_path):
    """A folder has no catalog that a reader could find views in."""
    text = f"{GOOD}live: {{views: true}}\n"
    (found,) = problems(tmp_path, text, SHOP_PASSWORD="x")
    assert "set lakehouse.catalog instead of lakehouse.root" in found
    in_catalog = text.replace("root: lake", "catalog: main").replace(
        "dir: ../archive", "dir: ../archive\n    relay: {dir: r}"
    )
    live = load_spec(write(tmp_path, in_catalog), {"SHOP_PASSWORD": "x"}).live
    assert live is not None
    assert live.views
