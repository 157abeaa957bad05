"""The suites of a task, read when it starts: what is wrong in one is told then, not at the first row."""

from pathlib import Path

from dmdelta.config import TaskSpec
from dmdelta.quality.suite import Suites, load_suites


def open_suites(spec: TaskSpec) -> Suites:
    """Those that the spec names; none without `quality`.

    Raises:
        ConfigError: one is wrong, or Great Expectations is not installed.
    """
    if spec.quality is None:
        return Suites()
    # Great Expectations takes a second to be imported, and is there only where it is asked for.
    from dmdelta.quality.expectations import assert_known  # noqa: PLC0415

    suites = load_suites(Path(spec.quality.schemas))
    for suite in suites.by_table.values():
        for expectation in suite.expectations:
            assert_known(expectation)
    return suites
