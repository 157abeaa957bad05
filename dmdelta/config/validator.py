"""Section `validator`: rows that change are compared with the source while a task runs."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from dmdelta.config.section import Duration, Section


class ValidatorConfig(Section):
    """Rows that the log has changed are read from the source again, a moment later, and compared with silver's."""

    mode: Literal["none", "fast", "full"] = "none"
    """`fast`: whether the row is there, or gone, on both sides. `full`: all of its columns, too."""

    row_error_delay: Duration = timedelta(minutes=30)
    """How long a row may differ, without a newer change in the log, before that is an error. The source is often ahead
    of silver: a row that differs is pending until then."""

    max_pending_row_count: Annotated[int, Field(ge=1)] = 100_000
    """Rows that may be pending at once, each takes about half a kilobyte. If more rows differ, silver is mostly far
    behind: the validator waits, and says so, and looks at them later."""
