"""A DM task and its sources, as YAML says them, as a spec: what has a counterpart is taken over, the rest is named.

Source: pingcap/tiflow, dm/config (`TaskConfig`, `SourceConfig`) and the task file reference of TiDB Data Migration.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmdelta.errors import ConfigError

Plain = dict[str, Any]
_SYNCER = ("checkpoint-flush-interval", "safe-mode", "safe-mode-duration")
_VALIDATOR = ("mode", "row-error-delay", "max-pending-row-count")
_SINK = ("worker-count", "batch", "compact", "multiple-rows")
_SAME = ("ignore-checking-items", "routes", "filters", "expression-filter", "case-sensitive")
_ONLINE = ("online-ddl", "shadow-table-rules", "trash-table-rules")
_RULES = {"route-rules": "routes", "filter-rules": "filters", "expression-filters": "expression-filter"}
_WHY = {
    "timezone": "TIMESTAMPs are moments in Delta: no zone is needed",
    "collation_compatible": "silver has no collations",
    "clean-dump-file": "tables are loaded without files",
    "experimental": "the checkpoint is always flushed beside the work",
    "heartbeat": "lag is known without writing to the source: docs/metrics.md",
    "remove-meta": "ask for it at a start: dmdelta run --remove-meta",
    "session": "the sink sets what it needs; `sink.foreign-key-checks` is a key of its own",
    "enable-gtid": "positions and GTIDs are both kept, always",
    "enable-relay": "there always is a relay",
    "interval": "it is looked every minute whether a segment may go",
    "checker": "a failure that may pass is tried again by itself, up to every five minutes",
    "enable": "a source that is in the spec is read",
    "validate-interval": "rows are looked at ten seconds after they are in silver, about",
    "check-interval": "rows that differ are looked at again, later and later",
    "meta-flush-interval": "it is written down as often as the checkpoint",
    "batch-query-size": "one connection asks for 200 rows at once",
    "max-pending-row-size": "`max-pending-row-count` bounds the memory: values of pending rows are not kept",
    "mydumper": "Spark's task slots read the tables, in chunks",
    "loader": "Spark's task slots read the tables, in chunks",
    "column-mapping-rules": "rows of all shards keep their keys: `_dm_shard` tells them apart",
    "queue-size": "a queue's length follows the work",
}
_NOTHING = "nothing like it is needed, or there is none yet"


@dataclass(frozen=True, slots=True)
class Remark:
    """A key that is not taken over as it stands."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The spec as plain values, in the order in which it is written, and what of DM's files is not as it was."""

    spec: Plain
    remarks: tuple[Remark, ...]


@dataclass(slots=True)
class _Reading:
    """One mapping of DM's that is read key by key; `rest` tells what nobody asked for."""

    place: str
    values: Plain

    def take(self, *keys: str) -> Any:
        """The value of the first of some keys that is there (old names come last); None if none is."""
        found = [self.values.pop(key) for key in keys if key in self.values]
        return next((value for value in found if value is not None), None)

    def take_some(self, keys: Sequence[str]) -> Plain:
        """Those of some keys that are there."""
        return {key: value for key in keys if (value := self.take(key)) is not None}

    def rest(self) -> list[Remark]:
        return [Remark(f"{self.place}{key}", _why(key)) for key in self.values]


def _why(key: str) -> str:
    return next(
        (why for known, why in _WHY.items() if key in (known, f"{known}s") or key.startswith(f"{known}-")), _NOTHING
    )


def spec_from_dm(task: Mapping[str, Any], sources: Sequence[Mapping[str, Any]], lakehouse: str) -> Imported:
    """Translate a task and the sources that it names.

    Args:
        lakehouse: the root of the Delta tables, which DM has no word for.

    Raises:
        ConfigError: a source is missing, or the task does what one spec cannot say.
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
        raise ConfigError(f"task-mode {mode!r} has no counterpart", hint="full, incremental and all have")
    return str(mode)


def _source(remarks: list[Remark], instance: _Reading, files: Mapping[str, Mapping[str, Any]], mode: str) -> Plain:
    """One of `sources`, from an instance and DM's file of its source."""
    name = str(instance.take("source-id"))
    if name not in files:
        raise ConfigError(f"the task reads {name!r}", hint="give the file of that source, too")
    reading = _Reading(f"{name}.", dict(files[name]))
    server = _Reading(f"{name}.from.", dict(reading.take("from") or {}))
    reading.take("source-id", "filters", "enable-gtid", "enable-relay", "enable")
    source = {"source-id": name, **_account(remarks, server, name), **reading.take_some(("flavor", "server-id"))}
    if source.get("flavor") not in ("mysql", "mariadb"):
        source.pop("flavor", None)
    if relay := _relay(remarks, reading, name):
        source["relay"] = relay
    meta = instance.take("meta")
    if meta and mode == "incremental":
        source["meta"] = {key: value for key, value in meta.items() if value}
    elif meta:
        remarks.append(Remark(f"{instance.place}meta", f"task-mode {mode} loads first, as in DM"))
    remarks += [*server.rest(), *reading.rest()]
    return source


def _relay(remarks: list[Remark], reading: _Reading, name: str) -> Plain:
    """The relay's folder, and for how long what has landed is kept there."""
    folder, purging = reading.take("relay-dir"), _Reading(f"{name}.purge.", dict(reading.take("purge") or {}))
    hours = purging.take("expires")
    purge = {**({"expires": f"{hours}h"} if hours else {}), **purging.take_some(("remain-space",))}
    remarks += purging.rest()
    return {**({"dir": folder} if folder is not None else {}), **({"purge": purge} if purge else {})}


def _account(remarks: list[Remark], server: _Reading, name: str) -> Plain:
    """Host, port, user, password and TLS. A password becomes a variable: DM's may be encrypted."""
    variable = re.sub(r"\W", "_", f"{name}_PASSWORD").upper()
    account = server.take_some(("host", "port", "user"))
    password = server.take("password")
    if password:
        account["password"] = f"${{{variable}}}"
        remarks.append(Remark(f"{server.place}password", f"set the environment variable {variable}"))
    security = _Reading(f"{server.place}security.", dict(server.take("security") or {}))
    tls = security.take_some(("ssl-ca", "ssl-cert", "ssl-key"))
    remarks += security.rest()
    return {**account, "security": tls} if tls.get("ssl-ca") else account


def _common_list(instances: Sequence[_Reading], lists: Mapping[str, Any]) -> Plain:
    """The block-allow-list of all instances.

    Raises:
        ConfigError: they have several, or one that is not there.
    """
    names = [instance.take("block-allow-list", "black-white-list") for instance in instances]
    missing = next((name for name in names if name and name not in lists), None)
    if missing:
        raise ConfigError(f"there is no block-allow-list {missing!r}", hint="mend the task's file")
    found = [lists[name] if name else {} for name in names]
    if any(one != found[0] for one in found):
        raise ConfigError(
            "the instances have different block-allow-lists, a spec has one", hint="make a task for each of the lists"
        )
    return {"block-allow-list": found[0]} if found and found[0] else {}


def _sharding(reading: _Reading) -> Plain:
    mode = reading.take("shard-mode") or ("pessimistic" if reading.take("is-sharding") else None)
    reading.take("is-sharding")
    return {"shard-mode": mode} if mode else {}


def _online(reading: _Reading) -> Plain:
    online = reading.take_some(_ONLINE)
    return {"online-ddl": True, **online} if reading.take("online-ddl-scheme") else online


def _refer_to_rules(instances: Sequence[_Reading], spec: Plain) -> None:
    """Which rules count for which source. In DM no name means no rule, here it means all: so it is written out."""
    for instance, source in zip(instances, spec["sources"], strict=True):
        for reference, rules in _RULES.items():
            names = instance.take(reference) or []
            if spec.get(rules):
                source[reference] = names


def _take_source_filters(remarks: list[Remark], files: Mapping[str, Mapping[str, Any]], spec: Plain) -> None:
    """The filters that DM has in a source's file, as rules for that source alone."""
    for source in spec["sources"]:
        name = source["source-id"]
        rules = {f"{name}-{number}": rule for number, rule in enumerate(files[name].get("filters") or (), 1)}
        if rules:
            for each in spec["sources"]:
                each.setdefault("filter-rules", [])
            source["filter-rules"] = [*source["filter-rules"], *rules]
            spec["filters"] = {**spec.get("filters", {}), **rules}
            remarks.append(Remark(f"{name}.filters", "are filters of the task, for this source alone"))


def _settings(remarks: list[Remark], instances: Sequence[_Reading], unit: str, named: Mapping[str, Any]) -> _Reading:
    """The settings of a unit, `syncer` or `validator`: a spec has one for all sources."""
    found: list[Plain] = []
    for instance in instances:
        settings = {**(named.get(instance.take(f"{unit}-config-name")) or {}), **(instance.take(unit) or {})}
        threads = instance.take(f"{unit}-thread")
        found.append({**settings, "worker-count": threads} if threads else settings)
    if any(settings != found[0] for settings in found):
        remarks.append(Remark(f"{unit}s", "the instances differ, a spec has one for all: the first one's counts"))
    return _Reading(f"{unit}s.", dict(found[0]) if found else {})


def _sink(remarks: list[Remark], target: _Reading, syncer: _Reading, metadata: str | None) -> Plain:
    """DM's target as the optional sink. DM writes to TiDB; a MySQL or MariaDB needs another `kind`."""
    sink = {"kind": "tidb", **_account(remarks, target, "SINK"), **syncer.take_some(_SINK)}
    remarks += [Remark("target-database", "silver is the target; `sink` gets the changes, too, or leave it out")]
    remarks += target.rest()
    return {**sink, **({"metadata": metadata} if metadata else {})}
