"""Section `quality`: the folder of the tables' suites, and the checks that no suite declares."""

from datetime import timedelta
from typing import Literal

from dmdelta.config.section import Duration, FolderPath, Section


class QualityConfig(Section):
    """Data quality checks. The suites are evaluated while the task runs, and by `dmdelta quality`."""

    schemas: FolderPath = "schemas"
    """The folder of the suites: `<schema>/<table>.yml`, by the names in silver. docs/quality.md describes a suite."""

    freshness: Duration = timedelta(minutes=15)
    """Maximum age of the oldest landed change that a table has not applied yet, for `dmdelta quality`."""

    sink: Literal["all", "passing"] = "all"
    """Which rows the sink executes: `all`, or only those that are `passing`: the target then lacks the rows that silver
    quarantines."""
