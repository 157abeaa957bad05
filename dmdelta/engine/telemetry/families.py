"""Converts counters and gauges to Prometheus metric families."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of a kind of objects; `grows`: it is a counter, which never decreases during a run."""

    name: str
    text: str
    of: Callable[[Any], float]
    grows: bool = False


def families(figures: Sequence[Figure], labels: Sequence[str], things: Mapping[Any, object]) -> Iterator[Metric]:
    """The metrics of a kind of objects, which are given by the values of their labels."""
    for figure in figures:
        values = {at: figure.of(thing) for at, thing in things.items()}
        yield family(figure.name, figure.text, labels, values, grows=figure.grows)


def family(name: str, text: str, labels: Sequence[str], values: Mapping[Any, float], *, grows: bool = False) -> Metric:
    """A gauge, or a counter if it `grows`, with its values by the values of the labels."""
    kind = CounterMetricFamily if grows else GaugeMetricFamily
    made = kind(f"dmdelta_{name}", text, labels=labels)
    for at, value in values.items():
        made.add_metric(at, value)
    return made
