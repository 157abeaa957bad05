"""The sections of a spec and of a suite: their defaults, and the values at the limits of each key."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from dmdelta.config.expression_filter import ExpressionFilterRule
from dmdelta.config.filters import FilterRule
from dmdelta.config.lakehouse import LakehouseConfig
from dmdelta.config.live import LiveConfig
from dmdelta.config.maintenance import MaintenanceConfig
from dmdelta.config.metrics import MetricsConfig
from dmdelta.config.routes import ExtractTable, RouteRule
from dmdelta.config.sink import SinkConfig
from dmdelta.config.snapshot import SnapshotConfig
from dmdelta.config.source import MetaConfig, PurgeConfig, SecurityConfig, SourceConfig
from dmdelta.config.suite import ExpectationConfig, ForeignKeyContract, SuiteConfig
from dmdelta.config.syncer import SyncerConfig
from dmdelta.config.task import TaskSpec
from dmdelta.config.validator import ValidatorConfig

SMALLEST = """
name: a
sources: [{source-id: one, host: db, user: u, meta: {binlog-name: b.1}, security: {ssl-ca: /ca.pem}}]
lakehouse: {root: /lake}
sink: {kind: tidb, host: t, user: u, session: {max_execution_time: 1}}
live: {}
metrics: {}
quality: {}
"""
COMPLETE = """
name: a
task-mode: incremental
sources:
- source-id: one
  host: db
  port: 3306
  user: u
  password: ''
  security: {ssl-ca: /ca.pem, ssl-verify-host: true, ssl-cert: null, ssl-key: null}
  flavor: null
  server-id: null
  meta: {binlog-name: b.1, binlog-pos: 4, binlog-gtid: null}
  relay: {dir: null, purge: {expires: 24h, remain-space: 15}}
  binlog-dir: null
  route-rules: null
  filter-rules: null
  expression-filters: null
ignore-checking-items: []
block-allow-list: {do-dbs: [], ignore-dbs: [], do-tables: [], ignore-tables: []}
shard-mode: null
shard-key-clash: warn
routes: {}
filters: {}
expression-filter: {}
case-sensitive: false
online-ddl: true
shadow-table-rules: ['^_(.+)_(?:new|gho)$']
trash-table-rules: ['^_(.+)_(?:ghc|del|old)$']
syncer: {checkpoint-flush-interval: 30s, target-freshness: 10s, safe-mode: false, safe-mode-duration: null}
snapshot: {bronze: true, consistency: none, readers: 2}
lakehouse: {root: /lake, catalog: null, bronze: bronze, metadata: dm_meta}
sink:
  kind: tidb
  host: t
  port: 3306
  user: u
  password: ''
  security: null
  session: {max_execution_time: 1}
  worker-count: 16
  batch: 100
  compact: true
  multiple-rows: true
  flush: async
  safe-mode: false
  foreign-key-checks: false
  metadata: dm_meta
validator: {mode: none, row-error-delay: 30m, max-pending-row-count: 100000}
maintenance: {automatic: true, bronze-days: null}
live: {landing-interval: 1s, views: false}
metrics: {host: 127.0.0.1, port: 9262}
quality: {schemas: schemas, freshness: 15m, sink: all}
"""
SUITE = """
columns: {c: {}}
foreign-keys: [{columns: [a], references: s.t, referenced-columns: [b]}]
expectations: [{type: expect_x}]
"""
COMPLETE_SUITE = """
columns: {c: {type: null, nullable: true}}
key: null
foreign-keys: [{columns: [a], references: s.t, referenced-columns: [b]}]
expectations: [{type: expect_x, kwargs: {}, on-failure: warn}]
"""


@pytest.mark.parametrize(
    ("model", "text", "complete"), [(TaskSpec, SMALLEST, COMPLETE), (SuiteConfig, SUITE, COMPLETE_SUITE)]
)
def test_keys_that_are_left_out_have_their_defaults(model, text, complete):
    """A file with only the required keys of each section is the same as one with all keys."""
    section = model.model_validate(yaml.safe_load(text))
    assert section.model_dump(mode="json", by_alias=True) == yaml.safe_load(complete)


SOURCE = {"source-id": "one", "host": "db", "user": "u"}
SINK = {"kind": "mysql", "host": "t", "user": "u", "session": {"lock_wait_timeout": 1}}
TASK = {"name": "a", "sources": [SOURCE], "lakehouse": {"root": "/lake"}}
RULE = {"schema-pattern": "s", "target-schema": "s"}
EXTRACT = {"table-regexp": "(.)", "target-column": "c"}
EXPRESSION = {"schema": "s", "table": "t", "insert-value-expr": "1"}
FILTER = {"schema-pattern": "s", "action": "Do"}
REFERENCE = {"columns": ["a"], "references": "s.t", "referenced-columns": ["b"]}
ROOT = {"root": "/lake"}
LIMITS: list[tuple[Any, dict[str, Any], str, list[Any], list[Any]]] = [
    (SourceConfig, SOURCE, "source-id", ["a", "a" * 32], ["", "a" * 33]),
    (SourceConfig, SOURCE, "port", [1, 65535], [0, 65536]),
    (SourceConfig, SOURCE, "server-id", [1, 2**32 - 1], [0, 2**32]),
    (MetaConfig, {"binlog-name": "b.1"}, "binlog-pos", [4, 2**40], [3]),
    (PurgeConfig, {}, "remain-space", [0, 1], [-1]),
    (PurgeConfig, {}, "expires", ["0s", 0, "1h"], [-1, "1", [1], True]),
    (SinkConfig, SINK, "port", [1, 65535], [0, 65536]),
    (SinkConfig, SINK, "worker-count", [1, 256], [0, 257]),
    (SinkConfig, SINK, "batch", [1, 100_000], [0, 100_001]),
    (SinkConfig, SINK, "metadata", ["m", "m" * 64], ["", "m" * 65, "1m", "m-n"]),
    (SnapshotConfig, {"consistency": "snapshot"}, "readers", [1, 64], [0]),
    (ValidatorConfig, {}, "max-pending-row-count", [1, 10**9], [0]),
    (MaintenanceConfig, {}, "bronze-days", [1, None], [0]),
    (MetricsConfig, {}, "port", [0, 65535], [-1, 65536]),
    (LakehouseConfig, ROOT, "bronze", ["b", "b" * 128], ["", "b" * 129, "a.b"]),
    (LakehouseConfig, ROOT, "metadata", ["m", "m" * 128], ["", "m" * 129]),
    (TaskSpec, TASK, "name", ["a", "a" * 64], ["", "a" * 65, "a.b"]),
    (TaskSpec, TASK, "sources", [[SOURCE]], [[]]),
    (TaskSpec, TASK, "shadow-table-rules", [["(a)"]], [[], [""], ["a"], ["(a)(b)"]]),
    (TaskSpec, TASK, "trash-table-rules", [["(a)"]], [[], [""], ["a"], ["(a)(b)"]]),
    (RouteRule, RULE, "schema-pattern", ["a", "~a"], ["", "~("]),
    (RouteRule, RULE, "target-schema", ["a", "a" * 64], ["", "a" * 65]),
    (RouteRule, RULE, "target-table", ["a", "a" * 64, None], ["", "a" * 65]),
    (ExtractTable, EXTRACT, "table-regexp", ["a", "(a)(b)"], ["", "("]),
    (ExtractTable, EXTRACT, "target-column", ["a", "a" * 64], ["", "a" * 65]),
    (FilterRule, FILTER, "events", [[], ["all"]], [[""], ["al"]]),
    (FilterRule, FILTER, "sql-pattern", [[], ["a"]], [[""], ["("]]),
    (ExpressionFilterRule, EXPRESSION, "schema", ["a"], [""]),
    (ExpressionFilterRule, EXPRESSION, "insert-value-expr", ["1"], [""]),
    (ForeignKeyContract, REFERENCE, "columns", [["a"]], [[]]),
    (ForeignKeyContract, REFERENCE, "referenced-columns", [["a"]], [[]]),
    (ForeignKeyContract, REFERENCE, "references", ["s.t"], ["t", "a.s.t", "s."]),
    (ExpectationConfig, {}, "type", ["expect_a", "unexpected_a"], ["expect_", "a", "expect_a b"]),
]


@pytest.mark.parametrize(
    ("model", "keys", "key", "allowed", "refused"),
    LIMITS,
    ids=[f"{number}-{case[0].__name__}.{case[2]}" for number, case in enumerate(LIMITS)],
)
def test_a_value_is_allowed_up_to_its_limits(model, keys, key, allowed, refused):
    """The first and the last value are accepted, those next to them are not."""
    for value in allowed:
        assert model.model_validate({**keys, key: value})
    for value in refused:
        with pytest.raises(ValidationError) as caught:
            model.model_validate({**keys, key: value})
        assert {error["loc"][0] for error in caught.value.errors()} == {key}


@pytest.mark.parametrize(
    ("model", "keys", "allowed", "message"),
    [
        (SnapshotConfig, {"consistency": "snapshot", "bronze": False}, {"bronze": True}, "remove `bronze: false`"),
        (SnapshotConfig, {"consistency": "snapshot", "bronze": False}, {"consistency": "none"}, "all tables at once"),
        (LakehouseConfig, {"root": "/lake", "catalog": "c"}, {"catalog": None}, "exactly one of root and catalog"),
        (LakehouseConfig, {"root": None, "catalog": None}, {"catalog": "c"}, "exactly one of root and catalog"),
        (SecurityConfig, {"ssl-ca": "a", "ssl-cert": "c"}, {"ssl-key": "k"}, "must be set together"),
        (SecurityConfig, {"ssl-ca": "a", "ssl-key": "k"}, {"ssl-key": None}, "must be set together"),
        (
            MetaConfig,
            {"binlog-gtid": "a:1", "binlog-pos": 4},
            {"binlog-gtid": None, "binlog-name": "b.1"},
            "requires b",
        ),
        (MetaConfig, {"binlog-gtid": "a:1", "binlog-name": "b.1"}, {"binlog-name": None}, "requires exactly one"),
        (SyncerConfig, {"checkpoint-flush-interval": "0s"}, {"checkpoint-flush-interval": "1ms"}, "longer than 0s"),
        (LiveConfig, {"landing-interval": "0s"}, {"landing-interval": "1ms"}, "longer than 0s"),
        (ForeignKeyContract, {**REFERENCE, "columns": ["a", "b"]}, {"columns": ["b"]}, "same number of columns"),
        (SourceConfig, {"source-id": "a", "host": "h"}, {"user": "u"}, "requires user"),
        (SourceConfig, {**SOURCE, "binlog-dir": "/d"}, {"binlog-dir": None}, "exactly one of host and binlog-dir"),
        (
            RouteRule,
            {**RULE, "extract-table": {**EXTRACT, "target-column": "_DM_X"}},
            {"extract-table": EXTRACT},
            "_dm_",
        ),
    ],
)
def test_keys_that_do_not_fit_together_are_refused(model, keys, allowed, message):
    """And accepted once one of them has another value."""
    with pytest.raises(ValidationError, match=message):
        model.model_validate(keys)
    assert model.model_validate({**keys, **allowed})


LOADED = {**TASK, "task-mode": "all"}
ARCHIVE = {"source-id": "one", "binlog-dir": "/d"}
TO_TIDB = {"kind": "tidb", "host": "t", "user": "u"}


@pytest.mark.parametrize(
    ("keys", "allowed", "message"),
    [
        ({"sink": TO_TIDB, "snapshot": {"bronze": False}}, {"task-mode": "incremental"}, "the sink reads bronze"),
        ({"sink": TO_TIDB, "snapshot": {"bronze": False}}, {"sink": None}, "the sink reads bronze"),
        ({"sink": TO_TIDB, "snapshot": {"bronze": False}}, {"snapshot": {}}, "the sink reads bronze"),
        ({"task-mode": "incremental", "sources": [ARCHIVE], "validator": {"mode": "fast"}}, {"validator": {}}, "archive"),
        ({"task-mode": "incremental", "sources": [ARCHIVE], "validator": {"mode": "fast"}}, {"sources": [SOURCE]}, "arch"),
        ({"sources": [{**SOURCE, "filter-rules": ["x"]}]}, {"sources": [SOURCE]}, "but the spec defines none"),
        ({"sources": [ARCHIVE]}, {"sources": [SOURCE]}, "an archive without tables to load"),
        ({"lakehouse": {"catalog": "c"}}, {"sources": [{**SOURCE, "relay": {"dir": "/r"}}]}, "requires relay.dir"),
    ],
)  # fmt: skip
def test_sections_that_do_not_fit_together_are_refused(keys, allowed, message):
    """And accepted once one of them has other keys."""
    with pytest.raises(ValidationError, match=message):
        TaskSpec.model_validate({**LOADED, **keys})
    assert TaskSpec.model_validate({**LOADED, **keys, **allowed})


@pytest.mark.parametrize(
    ("items", "check", "ignored"), [([], "a", False), (["a"], "a", True), (["b"], "a", False), (["all"], "a", True)]
)
def test_the_findings_of_a_check_are_ignored_by_its_name_or_by_all(items, check, ignored):
    assert TaskSpec.model_validate({**TASK, "ignore-checking-items": items}).is_ignored(check) is ignored


@pytest.mark.parametrize(
    ("mode", "meta", "loads"),
    [("all", None, True), ("full", None, True), ("incremental", None, False), ("all", {"binlog-name": "b.1"}, False)],
)
def test_a_source_is_loaded_unless_its_log_has_a_start(mode, meta, loads):
    """In the modes with a full load only."""
    spec = TaskSpec.model_validate({**TASK, "task-mode": mode, "sources": [{**SOURCE, "meta": meta}]})
    assert spec.loads(spec.sources[0]) is loads
