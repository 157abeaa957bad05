"""Converts a DM task and its sources, as parsed YAML, to a spec; reports every key that has no counterpart.

Source: pingcap/tiflow, dm/config (`TaskConfig`, `SourceConfig`) and the task file reference of TiDB Data Migration.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmdelta.config.sink import OWN_VARIABLES
from dmdelta.errors import ConfigError

Plain = dict[str, Any]
_SYNCER = ("checkpoint-flush-interval", "safe-mode", "safe-mode-duration")
_VALIDATOR = ("mode", "row-error-delay", "max-pending-row-count")
_SINK = ("worker-count", "batch", "compact", "multiple-rows")
_SAME = ("ignore-checking-items", "routes", "filters", "expression-filter", "case-sensitive")
_ONLINE = ("online-ddl", "shadow-table-rules", "trash-table-rules")
_RULES = {"route-rules": "routes", "filter-rules": "filters", "expression-filters": "expression-filter"}
_WHY = {
    "timezone": "not needed, because Delta stores TIMESTAMPs as instants",
    "collation_compatible": "not applicable, because silver has no collations",
    "clean-dump-file": "not applicable, because tables are loaded without dump files",
    "experimental": "not needed, because the checkpoint is always flushed asynchronously",
    "heartbeat": "not needed, because lag is measured without writing to the source (docs/metrics.md)",
    "remove-meta": "use `dmdelta run --remove-meta` on start instead",
    "enable-gtid": "not needed, because both positions and GTIDs are always recorded",
    "enable-relay": "not needed, because the relay is always enabled",
    "interval": "not configurable; the relay is checked for expired segments every minute",
    "checker": "not configurable; transient failures are retried automatically, at intervals of up to five minutes",
    "enable": "every source in the spec is enabled",
    "validate-interval": "not configurable; rows are validated about ten seconds after they reach silver",
    "check-interval": "not configurable; rows that differ are rechecked at increasing intervals",
    "meta-flush-interval": "not configurable; validator state is written together with the checkpoint",
    "batch-query-size": "not configurable; one connection reads 200 rows per query",
    "max-pending-row-size": "use `max-pending-row-count`, which bounds the memory: values of pending rows are not kept",
    "mydumper": "not applicable, because Spark's task slots read the tables in chunks",
    "loader": "not applicable, because Spark's task slots read the tables in chunks",
    "column-mapping-rules": "not needed, because rows of all shards keep their keys: `_dm_shard` distinguishes them",
    "queue-size": "not configurable; the queue length adapts to the load",
}
_NOTHING = "no counterpart; not needed or not supported yet"


@dataclass(frozen=True, slots=True)
class Remark:
    """A key that is not converted as is."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The spec as plain values, in the order in which it is written, and remarks on keys not converted as is."""

    spec: Plain
    remarks: tuple[Remark, ...]


@dataclass(slots=True)
class _Reading:
    """One of DM's mappings, read key by key; `rest` returns the keys that were never read."""

    place: str
    values: Plain

    def take(self, *keys: str) -> Any:
        """The value of the first of `keys` that is set (deprecated names last); None if none is."""
        values = [self.values.pop(key) for key in keys if key in self.values]
        return next((value for value in values if value is not None), None)

    def take_some(self, keys: Sequence[str]) -> Plain:
        """The subset of `keys` that is set."""
        return {key: value for key in keys if (value := self.take(key)) is not None}

    def rest(self) -> list[Remark]:
        return [Remark(f"{self.place}{key}", _why(key)) for key in self.values]


def _why(key: str) -> str:
    return next(
        (why for known, why in _WHY.items() if key in (known, f"{known}s") or key.startswith(f"{known}-")), _NOTHING
    )


def spec_from_dm(task: Mapping[str, Any], sources: Sequence[Mapping[str, Any]], lakehouse: str) -> Imported:
    """Convert a task and the sources that it names.

    Args:
        lakehouse: the root of the Delta tables, which DM's configuration does not have.

    Raises:
        ConfigError: a source is missing, or the task cannot be expressed as one spec.
    """
    reading, remarks = _Reading("", dict(task)), list[Remark]()
    listed = enumerate(reading.take("mysql-instances") or ())
    instances = [_Reading(f"mysql-instances[{number}].", dict(instance)) for number, instance in listed]
    files = {str(source.get("source-id")): source for source in sources}
    mode = _mode(reading.take("task-mode"))
    spec = {
        "name": reading.take("name"),
        "task-mode": mode,
        "sources": [_source(remarks, instance, files, mode) for instance in instances],
        **_common_list(instances, reading.take("block-allow-list", "black-white-list") or {}),
        **_sharding(reading),
        **reading.take_some(_SAME),
        **_online(reading),
    }
    _refer_to_rules(instances, spec)
    _take_source_filters(remarks, files, spec)
    syncer = _settings(remarks, instances, "syncer", reading.take("syncers") or {})
    spec |= {"syncer": taken} if (taken := syncer.take_some(_SYNCER)) else {}
    validator = _settings(remarks, instances, "validator", reading.take("validators") or {})
    spec |= {"validator": taken} if (taken := validator.take_some(_VALIDATOR)) else {}
    spec["lakehouse"] = {"root": lakehouse}
    target, metadata = reading.take("target-database"), reading.take("meta-schema")
    if target is not None:
        spec["sink"] = _sink(remarks, _Reading("target-database.", dict(target)), syncer, metadata)
    rest = [left for instance in instances for left in instance.rest()]
    return Imported(spec, (*remarks, *reading.rest(), *syncer.rest(), *validator.rest(), *rest))


def _mode(mode: str | None) -> str:
    if mode not in ("full", "incremental", "all"):
        raise ConfigError(f"task-mode {mode!r} is not supported", hint="use full, incremental or all")
    return str(mode)


def _source(remarks: list[Remark], instance: _Reading, files: Mapping[str, Mapping[str, Any]], mode: str) -> Plain:
    """One entry of `sources`, from an instance and DM's file of its source."""
    name = str(instance.take("source-id"))
    if name not in files:
        raise ConfigError(
            f"no source file for {name!r}, which the task reads", hint="pass the file of that source as well"
        )
    reading = _Reading(f"{name}.", dict(files[name]))
    server = _Reading(f"{name}.from.", dict(reading.take("from") or {}))
    by_gtid = bool(reading.values.get("enable-gtid"))
    reading.take("source-id", "filters")
    source = {"source-id": name, **_account(remarks, server, name), **reading.take_some(("flavor", "server-id"))}
    if source.get("flavor") not in ("mysql", "mariadb"):
        source.pop("flavor", None)
    if relay := _relay(remarks, reading, name):
        source["relay"] = relay
    meta = _Reading(f"{instance.place}meta.", dict(instance.take("meta") or {}))
    if meta.values and mode != "incremental":
        remarks.append(Remark(f"{instance.place}meta", f"ignored: task-mode {mode} starts with a full load, as in DM"))
    elif position := _position(remarks, meta, by_gtid=by_gtid):
        source["meta"] = position
    remarks += [*server.rest(), *reading.rest()]
    return source


def _position(remarks: list[Remark], meta: _Reading, *, by_gtid: bool) -> Plain:
    """Where DM starts: its `meta` may have a file and a GTID set, and the source's `enable-gtid` decides."""
    name, offset, gtid_set = meta.take("binlog-name"), meta.take("binlog-pos"), meta.take("binlog-gtid")
    remarks += meta.rest()
    if gtid_set and (by_gtid or not name):
        if name:
            remarks.append(Remark(f"{meta.place}binlog-name", "ignored: with enable-gtid, DM starts at binlog-gtid"))
        return {"binlog-gtid": gtid_set}
    if gtid_set:
        remarks.append(Remark(f"{meta.place}binlog-gtid", "ignored: without enable-gtid, DM starts at binlog-name"))
    return {"binlog-name": name, **({"binlog-pos": offset} if offset else {})} if name else {}


def _relay(remarks: list[Remark], reading: _Reading, name: str) -> Plain:
    """The relay's folder, and how long landed segments are kept in it."""
    folder, purging = reading.take("relay-dir"), _Reading(f"{name}.purge.", dict(reading.take("purge") or {}))
    hours = purging.take("expires")
    purge = {**({"expires": f"{hours}h"} if hours else {}), **purging.take_some(("remain-space",))}
    remarks += purging.rest()
    return {**({"dir": folder} if folder is not None else {}), **({"purge": purge} if purge else {})}


def _account(remarks: list[Remark], server: _Reading, name: str) -> Plain:
    """Host, port, user, password and TLS. A password becomes an environment variable: DM's may be encrypted."""
    variable = re.sub(r"\W", "_", f"{name}_PASSWORD").upper()
    account = server.take_some(("host", "port", "user"))
    password = server.take("password")
    if password:
        account["password"] = f"${{{variable}}}"
        remarks.append(Remark(f"{server.place}password", f"set the environment variable {variable}"))
    security = _Reading(f"{server.place}security.", dict(server.take("security") or {}))
    tls = security.take_some(("ssl-ca", "ssl-cert", "ssl-key"))
    remarks += security.rest()
    if tls.get("ssl-ca"):
        return {**account, "security": tls}
    remarks += [Remark(f"{security.place}{key}", "ignored: TLS requires ssl-ca") for key in tls]
    return account


def _common_list(instances: Sequence[_Reading], lists: Mapping[str, Any]) -> Plain:
    """The block-allow-list shared by all instances.

    Raises:
        ConfigError: the instances use different lists, or a list that does not exist.
    """
    names = [instance.take("block-allow-list", "black-white-list") for instance in instances]
    missing = next((name for name in names if name and name not in lists), None)
    if missing:
        raise ConfigError(f"block-allow-list {missing!r} does not exist", hint="define it in the task's file")
    used = [lists[name] if name else {} for name in names]
    if any(one != used[0] for one in used):
        raise ConfigError(
            "the instances have different block-allow-lists; a spec has one", hint="create one task per list"
        )
    return {"block-allow-list": used[0]} if used and used[0] else {}


def _sharding(reading: _Reading) -> Plain:
    mode = reading.take("shard-mode") or ("pessimistic" if reading.take("is-sharding") else None)
    reading.take("is-sharding")
    return {"shard-mode": mode} if mode else {}


def _online(reading: _Reading) -> Plain:
    online = reading.take_some(_ONLINE)
    return {"online-ddl": True, **online} if reading.take("online-ddl-scheme") else online


def _refer_to_rules(instances: Sequence[_Reading], spec: Plain) -> None:
    """Writes out which rules apply to which source: in DM no names means no rules, in a spec it means all rules."""
    for instance, source in zip(instances, spec["sources"], strict=True):
        for reference, rules in _RULES.items():
            names = instance.take(reference) or []
            if spec.get(rules):
                source[reference] = names


def _take_source_filters(remarks: list[Remark], files: Mapping[str, Mapping[str, Any]], spec: Plain) -> None:
    """Converts the filters of DM's source files to rules that apply to that source only."""
    for source in spec["sources"]:
        name = source["source-id"]
        rules = {f"{name}-{number}": rule for number, rule in enumerate(files[name].get("filters") or (), 1)}
        if rules:
            for each in spec["sources"]:
                each.setdefault("filter-rules", [])
            source["filter-rules"] = [*source["filter-rules"], *rules]
            spec["filters"] = {**spec.get("filters", {}), **rules}
            remarks.append(Remark(f"{name}.filters", "converted to filters of the task that apply to this source only"))


def _settings(remarks: list[Remark], instances: Sequence[_Reading], unit: str, named: Mapping[str, Any]) -> _Reading:
    """The settings of a unit, `syncer` or `validator`: a spec has one set for all sources."""
    all_settings: list[Plain] = []
    for instance in instances:
        settings = {**(named.get(instance.take(f"{unit}-config-name")) or {}), **(instance.take(unit) or {})}
        threads = instance.take(f"{unit}-thread")
        all_settings.append({**settings, "worker-count": threads} if threads else settings)
    if any(settings != all_settings[0] for settings in all_settings):
        remarks.append(Remark(f"{unit}s", "the instances differ, a spec has one set for all: the first one is used"))
    return _Reading(f"{unit}s.", dict(all_settings[0]) if all_settings else {})


def _sink(remarks: list[Remark], target: _Reading, syncer: _Reading, metadata: str | None) -> Plain:
    """DM's target as the optional sink. DM writes to TiDB; MySQL and MariaDB need another `kind`."""
    sink = {"kind": "tidb", **_account(remarks, target, "SINK"), **syncer.take_some(_SINK)}
    variables = target.take("session") or {}
    own = sorted(name for name in variables if name.lower() in OWN_VARIABLES)
    why = "the sink sets it itself; use `sink.foreign-key-checks` for foreign keys"
    remarks += [Remark(f"target-database.session.{name}", why) for name in own]
    session = {name: value for name, value in variables.items() if name not in own}
    remarks += [
        Remark(
            "target-database",
            "silver is the target; `sink` also writes the changes to this database, remove it if not needed",
        )
    ]
    remarks += target.rest()
    return {**sink, **({"session": session} if session else {}), **({"metadata": metadata} if metadata else {})}
