"""GTID sets: the transactions that a server has executed, or that a task has read.

MySQL: `uuid:1-5:7,uuid:tag:1-3` (documentation: "GTID Sets"; tags since 8.3). MariaDB: `domain-server-seq,…`, the
newest of each domain ("Global Transaction ID").
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dmdelta.errors import ConfigError

Flavor = Literal["mysql", "mariadb"]
Interval = tuple[int, int]
"""First and last transaction number, both inclusive."""

_UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_TAG = re.compile(r"^[a-z_][a-z0-9_]{0,31}$")
_NUMBERS = re.compile(r"^(\d+)(?:-(\d+))?$")


@dataclass(frozen=True)
class MysqlGtidSet:
    """A set of MySQL GTIDs: intervals by `uuid` or `uuid:tag`."""

    intervals: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "MysqlGtidSet":
        """Raises ConfigError if the text is not a GTID set."""
        intervals: dict[str, list[Interval]] = {}
        for part in filter(None, (piece.strip() for piece in text.replace("\n", "").split(","))):
            uuid, *rest = (word.strip().lower() for word in part.split(":"))
            if not _UUID.match(uuid) or not rest:
                raise _bad(text)
            name = uuid
            for word in rest:
                numbers = _NUMBERS.match(word)
                if numbers:
                    first = int(numbers[1])
                    intervals.setdefault(name, []).append((first, int(numbers[2] or first)))
                elif _TAG.match(word):
                    name = f"{uuid}:{word}"
                else:
                    raise _bad(text)
        return cls({name: _merged(spans) for name, spans in sorted(intervals.items())})

    def add(self, gtid: str) -> "MysqlGtidSet":
        """The set with one more transaction, `uuid:7` or `uuid:tag:7`."""
        name, _, number = gtid.lower().rpartition(":")
        known = self.intervals.get(name, ())
        if known and known[-1][1] + 1 == int(number):  # the usual case: the next number
            grown = (*known[:-1], (known[-1][0], int(number)))
        else:
            grown = _merged([*known, (int(number), int(number))])
        return MysqlGtidSet({**self.intervals, name: grown})

    def union(self, other: "MysqlGtidSet") -> "MysqlGtidSet":
        names = sorted({*self.intervals, *other.intervals})
        return MysqlGtidSet({n: _merged([*self.intervals.get(n, ()), *other.intervals.get(n, ())]) for n in names})

    def minus(self, other: "MysqlGtidSet") -> "MysqlGtidSet":
        """The transactions in this set that are not in `other`."""
        left = {n: tuple(_without(spans, other.intervals.get(n, ()))) for n, spans in self.intervals.items()}
        return MysqlGtidSet({name: spans for name, spans in left.items() if spans})

    def __contains__(self, gtid: str) -> bool:
        name, _, number = gtid.lower().rpartition(":")
        return any(first <= int(number) <= last for first, last in self.intervals.get(name, ()))

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __str__(self) -> str:
        return ",".join(f"{name}:{':'.join(map(_span, spans))}" for name, spans in sorted(self.intervals.items()))


@dataclass(frozen=True)
class MariadbGtidSet:
    """The newest GTID of each domain: the set contains everything of the domain up to its sequence number."""

    newest: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By domain: (server id, sequence number)."""

    @classmethod
    def parse(cls, text: str) -> "MariadbGtidSet":
        """Raises ConfigError if the text is not a GTID list."""
        newest: dict[int, tuple[int, int]] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            try:
                domain, server, seq = map(int, part.split("-"))
            except ValueError:
                raise _bad(text) from None
            if domain not in newest or seq > newest[domain][1]:
                newest[domain] = (server, seq)
        return cls(dict(sorted(newest.items())))

    def add(self, gtid: str) -> "MariadbGtidSet":
        """The set with one more transaction, `0-1-7`."""
        return self.union(MariadbGtidSet.parse(gtid))

    def union(self, other: "MariadbGtidSet") -> "MariadbGtidSet":
        joined = dict(self.newest)
        for domain, point in other.newest.items():
            if domain not in joined or point[1] > joined[domain][1]:
                joined[domain] = point
        return MariadbGtidSet(dict(sorted(joined.items())))

    def minus(self, other: "MariadbGtidSet") -> "MariadbGtidSet":
        """The domains in which `other` is behind this set."""
        ahead = {d: p for d, p in self.newest.items() if d not in other.newest or p[1] > other.newest[d][1]}
        return MariadbGtidSet(ahead)

    def __contains__(self, gtid: str) -> bool:
        domain, _, seq = map(int, gtid.split("-"))
        return domain in self.newest and seq <= self.newest[domain][1]

    def __bool__(self) -> bool:
        return bool(self.newest)

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{seq}" for domain, (server, seq) in self.newest.items())


GtidSet = MysqlGtidSet | MariadbGtidSet


class GtidRun(NamedTuple):
    """Transactions with consecutive numbers, `first` to `last`, that are adjacent in a log.

    Attributes:
        name: `uuid`, `uuid:tag`, or MariaDB's `domain-server`.
    """

    name: str
    first: int
    last: int


def run_of(gtid: str) -> GtidRun:
    """The run that consists of one transaction: `uuid:7`, `uuid:tag:7` or `0-1-7`."""
    name, _, number = gtid.rpartition(":" if ":" in gtid else "-")
    return GtidRun(name, int(number), int(number))


def extend(runs: list[GtidRun], run: GtidRun) -> None:
    """Append the next run in log order to `runs`; merge it with the last one if it continues it."""
    if runs and runs[-1].name == run.name and runs[-1].last + 1 == run.first:
        runs[-1] = GtidRun(run.name, runs[-1].first, run.last)
    else:
        runs.append(run)


def grown(gtids: GtidSet, runs: Iterable[GtidRun]) -> GtidSet:
    """The set with all transactions of `runs`, given in log order, added at once: `add` copies the set each time.

    Raises:
        ConfigError: runs of the other flavor.
    """
    if isinstance(gtids, MariadbGtidSet):
        newest: dict[int, tuple[int, int]] = {}
        for name, _, last in runs:
            domain, server = _domain_and_server(name)
            if domain not in newest or last > newest[domain][1]:
                newest[domain] = (server, last)
        return gtids.union(MariadbGtidSet(newest))
    intervals: dict[str, list[Interval]] = {}
    for name, first, last in runs:
        intervals.setdefault(name.lower(), []).append((first, last))
    for name in intervals:
        if not _UUID.match(name.partition(":")[0]):
            raise _bad(name)
    return gtids.union(MysqlGtidSet({name: tuple(spans) for name, spans in intervals.items()}))


def parse_gtid_set(text: str, flavor: Flavor) -> GtidSet:
    """The set that `text` describes in a flavor's notation; empty text is the empty set.

    Raises:
        ConfigError: the text is not a GTID set.
    """
    return MariadbGtidSet.parse(text) if flavor == "mariadb" else MysqlGtidSet.parse(text)


def missing_from(wanted: GtidSet, have: GtidSet) -> str:
    """The part of `wanted` that is not in `have`, as text; empty if none. Sets of two flavors are disjoint."""
    if isinstance(wanted, MysqlGtidSet) and isinstance(have, MysqlGtidSet):
        return str(wanted.minus(have))
    if isinstance(wanted, MariadbGtidSet) and isinstance(have, MariadbGtidSet):
        return str(wanted.minus(have))
    return str(wanted)


def joined(older: GtidSet | None, newer: GtidSet) -> GtidSet:
    """The union. Sets of two flavors have none, so the newer one replaces the older."""
    if isinstance(older, MysqlGtidSet) and isinstance(newer, MysqlGtidSet):
        return older.union(newer)
    if isinstance(older, MariadbGtidSet) and isinstance(newer, MariadbGtidSet):
        return older.union(newer)
    return newer


def _domain_and_server(name: str) -> tuple[int, int]:
    domain, _, server = name.partition("-")
    if not (domain.isdecimal() and server.isdecimal()):
        raise _bad(name)
    return int(domain), int(server)


def _bad(text: str) -> ConfigError:
    return ConfigError(f"{text!r} is not a GTID set", hint="MySQL: uuid:1-5, MariaDB: 0-1-100")


def _span(interval: Interval) -> str:
    first, last = interval
    return str(first) if first == last else f"{first}-{last}"


def _merged(intervals: list[Interval]) -> tuple[Interval, ...]:
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _without(spans: tuple[Interval, ...], taken: tuple[Interval, ...]) -> Iterator[Interval]:
    for first, last in spans:
        at = first
        for begin, end in taken:
            if end < at or begin > last:
                continue
            if begin > at:
                yield (at, begin - 1)
            at = end + 1
        if at <= last:
            yield (at, last)
