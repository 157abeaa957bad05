"""Section `validator`: continuous comparison of changed rows with the source while a task runs."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from dmdelta.config.section import Duration, Section


class ValidatorConfig(Section):
    """Rows that the log has changed are reread from the source shortly afterwards and compared with silver's rows."""

    mode: Literal["none", "fast", "full"] = "none"
    """`fast`: compare whether the row exists on both sides. `full`: compare all of its columns as well."""

    row_error_delay: Duration = timedelta(minutes=30)
    """How long a row may differ, without a newer change in the log, before it counts as an error. The source is often
    ahead of silver: a row that differs is pending until then."""

    max_pending_row_count: Annotated[int, Field(ge=1)] = 100_000
    """Maximum number of pending rows, each of which takes about half a kilobyte. If more rows differ, silver is usually
    far behind: the validator logs this, waits, and rechecks the rows later."""
