"""Section `quality`: where the tables' suites are, and what of them is not written down there."""

from datetime import timedelta

from dmdelta.config.section import Duration, FolderPath, Section


class QualityConfig(Section):
    """What is expected of the tables. Their suites are judged while the task runs, and by `dmdelta quality`."""

    schemas: FolderPath = "schemas"
    """The folder of the suites: `<schema>/<table>.yml` by the names in silver. docs/quality.md says what is in one."""

    freshness: Duration = timedelta(minutes=15)
    """How old the oldest landed change that a table lacks may be, for `dmdelta quality`."""
