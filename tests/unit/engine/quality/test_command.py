"""Which sources `dmdelta quality` covers, and which of them it leaves out."""

import logging
from types import SimpleNamespace

import pytest

from dmdelta.config import TaskSpec
from dmdelta.engine.quality import command
from dmdelta.engine.quality.command import QualityRequest, parts_of, split_by_source
from dmdelta.errors import ConfigError
from dmdelta.logging import fields_of
from dmdelta.model.position import Position

BEGIN, END = Position(1, "binlog.000001", 4), Position(1, "binlog.000001", 900)


def spec_of(*names):
    return TaskSpec.model_validate(
        {
            "name": "t",
            "sources": [{"source-id": name, "binlog-dir": f"/{name}"} for name in names],
            "lakehouse": {"root": "/lake"},
        }
    )


def covered(request, *names):
    return [(config.source_id, asked) for config, asked in split_by_source(spec_of(*names), request)]


def test_all_sources_are_covered_unless_one_is_named():
    assert [name for name, _ in covered(QualityRequest(), "a", "b")] == ["a", "b"]
    assert [name for name, _ in covered(QualityRequest(last=5, images=True), "a", "b")] == ["a", "b"]
    assert [name for name, _ in covered(QualityRequest(source="b"), "a", "b")] == ["b"]
    assert [name for name, _ in covered(QualityRequest(), "a")] == ["a"]


@pytest.mark.parametrize("time", ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00+02:00", "2026-11-21"])
def test_a_time_applies_to_each_source(time):
    """Also a date, which has the form of a MariaDB GTID."""
    for request in (QualityRequest(begin=time, replay=True), QualityRequest(begin="2000-01-01", end=time)):
        found = [asked for _, asked in covered(request, "a", "b")]
        assert [asked.source for asked in found] == ["a", "b"]
        assert {(asked.begin, asked.end) for asked in found} == {(request.begin, request.end)}
        assert {asked.replay for asked in found} == {request.replay}


@pytest.mark.parametrize(
    "place",
    ["binlog.000012:4711", "2/binlog.000012:4711", "batch:1", "0-1-7", "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"],
)
@pytest.mark.parametrize("side", ["begin", "end"])
def test_another_place_belongs_to_one_source(place, side):
    """With several sources, it needs the name of one; it is passed on unchanged."""
    request = QualityRequest(**{side: place})
    with pytest.raises(
        ConfigError, match="place in the log of one source, and the task has the sources a, b"
    ) as caught:
        covered(request, "a", "b")
    assert "--source" in (caught.value.hint or "")
    assert covered(request, "a") == [("a", request)]
    named = QualityRequest(source="b", **{side: place})
    assert covered(named, "a", "b") == [("b", named)]


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_an_unknown_source_is_refused(names):
    with pytest.raises(ConfigError, match="the task has the sources"):
        covered(QualityRequest(source="c"), *names)


class Known:
    """A source with tables; without, nothing of it has landed."""

    def __init__(self, name, *tables):
        self.config, self.tables = SimpleNamespace(source_id=name), tables

    def known_tables(self):
        return [tuple(table.split(".")) for table in self.tables]

    def tables_like(self, pattern, known):
        found = [name for name in known if pattern in ("*", ".".join(name))]
        if not found:
            raise ConfigError(f"bronze has no table {pattern}")
        return found


@pytest.fixture
def planned(monkeypatch, caplog):
    """Plans a request for sources, and returns the names of the tables by source, and the warnings."""

    def range_of(source, _request):
        if not source.tables:
            raise ConfigError(f"silver has no data of {source.config.source_id} yet")
        return BEGIN, END

    def plan(request, *sources):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            parts = parts_of([(source, request) for source in sources])
        assert {(part.begin, part.end) for part in parts} == {(BEGIN, END)}
        found = {part.source.config.source_id: [".".join(name) for name in part.names] for part in parts}
        return found, [fields_of(record)["context"] for record in caplog.records]

    monkeypatch.setattr(command, "_kept_range", range_of)
    return plan


def test_a_source_without_data_is_left_out_with_a_warning(planned):
    """The other source is evaluated. If no source has data, that is an error."""
    found, warnings = planned(QualityRequest(), Known("a"), Known("b", "s.t"))
    assert found == {"b": ["s.t"]}
    assert warnings == [{"source": "a", "why": "silver has no data of a yet"}]
    with pytest.raises(ConfigError, match="silver has no data of a yet"):
        planned(QualityRequest(), Known("a"), Known("b"))


def test_a_table_selects_its_sources(planned):
    """A source without the table is no reason for a warning; a table that no source has is an error."""
    sources = Known("a", "s.t", "s.u"), Known("b", "s.t")
    assert planned(QualityRequest(), *sources) == ({"a": ["s.t", "s.u"], "b": ["s.t"]}, [])
    assert planned(QualityRequest(table="s.u"), *sources) == ({"a": ["s.u"]}, [])
    with pytest.raises(ConfigError, match=r"bronze has no table s\.x"):
        planned(QualityRequest(table="s.x"), *sources)
