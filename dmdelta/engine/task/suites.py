"""The quality suites of a task, loaded at its start: errors in a suite appear then, not at the first row."""

from pathlib import Path

from dmdelta.config import TaskSpec
from dmdelta.quality.suite import Suites, load_suites


def open_suites(spec: TaskSpec) -> Suites:
    """The suites that the spec names; none without `quality`.

    Raises:
        ConfigError: a suite is invalid, or Great Expectations is not installed.
    """
    if spec.quality is None:
        return Suites()
    # Great Expectations takes a second to import, and is only installed where it is needed.
    from dmdelta.quality.expectations import assert_known  # noqa: PLC0415

    suites = load_suites(Path(spec.quality.schemas))
    for suite in suites.by_table.values():
        for expectation in suite.expectations:
            assert_known(expectation)
    return suites
