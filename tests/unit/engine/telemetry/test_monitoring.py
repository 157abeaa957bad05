"""Dashboard and alert rules use existing metrics."""

import json
import re
from pathlib import Path

import promql_parser
import pytest
import yaml

from dmdelta.engine.telemetry.prometheus import metrics_page

MONITORING = Path("monitoring")
OTHERS = {"up": {"job", "instance"}, "process_resident_memory_bytes": {"instance"}}
"""Prometheus' own metrics, and the process's."""
TARGETS = {"instance", "job"}
"""Labels that Prometheus adds to every metric."""
_LINE = re.compile(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*) \|", re.MULTILINE)


def known() -> dict[str, set[str]]:
    """The labels of each metric, from docs/metrics.md, which has its own test."""
    metrics = {}
    for name, kind, labels in _LINE.findall(metrics_page()):
        names = (f"{name}_sum", f"{name}_count") if kind == "summary" else (name,)
        metrics |= {each: {*filter(None, labels.split(", ")), *TARGETS} for each in names}
    return metrics | OTHERS


def queries() -> list[tuple[str, str]]:
    rules = yaml.safe_load((MONITORING / "dmdelta.rules.yml").read_text())
    alerts = [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return alerts + [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize(("name", "query"), queries())
def test_a_query_uses_existing_metrics_and_labels(name, query):
    """It is valid PromQL, and each of its selectors matches a metric."""
    selectors = list(selectors_of(promql_parser.parse(query.replace("$instance", ".*"))))
    assert selectors, name
    for selector in selectors:
        assert selector.name in known(), f"{name}: there is no {selector.name}"
        asked = {matcher.name for matcher in selector.matchers.matchers}
        assert asked <= known()[selector.name], f"{name}: {selector.name} has no {asked - known()[selector.name]}"


def selectors_of(node):
    """Every vector selector below a node of a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    parts = ("expr", "lhs", "rhs", "vector_selector", "param")
    children = [getattr(node, part) for part in parts if getattr(node, part, None) is not None]
    for child in [*children, *getattr(node, "args", ())]:
        yield from selectors_of(child)


def test_rules_are_valid():
    """Names are unique, and every alert has a meaning and a next step."""
    rules = yaml.safe_load((MONITORING / "dmdelta.rules.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({alert["alert"] for alert in alerts}) == len(alerts) >= 15
    for alert in alerts:
        assert alert.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smh]", alert.get("for", "5m"))
        assert alert["labels"]["severity"] in ("warning", "critical")
        assert alert["annotations"].keys() == {"summary", "next_step"}


def test_panels_do_not_overlap():
    """24 columns, without overlapping panels."""
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    places = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
