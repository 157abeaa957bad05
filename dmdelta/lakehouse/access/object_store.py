"""Tables in object stores, read with delta-rs by commands that have not started Spark. Spark writes them.

The credentials are those of the environment. Where there are none, Spark's own configuration may have some: Spark reads
then. It also reads what delta-rs cannot: a table with a feature that it lacks, a bucket that refuses its credentials.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dmdelta.errors import UnsupportedTable
from dmdelta.lakehouse.access.commit_log import Commit
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.access.deferred_session import is_unstarted
from dmdelta.lakehouse.access.interface import Condition, MetadataAccess, MetadataRow, NewestBy, RowCondition
from dmdelta.lakehouse.access.local_root import is_provided
from dmdelta.logging import get_logger

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.delta_rs.remote_table import RemoteTable

log = get_logger(__name__)
Rows = TypeVar("Rows")
_BY_URI = re.compile(r"delta\.`((s3a?|gs|abfss)://[^`?#\s]+)`")
_AWS = (
    *("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)
_CREDENTIALS = {
    "s3": _AWS,
    "s3a": _AWS,
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    "abfss": (
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
        *("AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"),
    ),
}
"""By scheme: the variables of which delta-rs needs one. It reads them, and those that belong to them, by itself."""
_LIMITS = {"max_retries": "2", "retry_timeout": "10s", "connect_timeout": "5s", "timeout": "20s"}
"""Otherwise an unreachable store takes minutes."""


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """Where delta-rs finds a table, and its options."""

    uri: str
    options: Mapping[str, str]


def plan_object_place(table: str, environment: Mapping[str, str]) -> ObjectPlace | None:
    """Where delta-rs finds the table with this SQL identifier.

    None: not in an object store, or the environment has no credentials for it.
    """
    match = _BY_URI.fullmatch(table)
    if match is None or not any(environment.get(name) for name in _CREDENTIALS[match[2]]):
        return None
    is_plain_http = match[2].startswith("s3") and environment.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return ObjectPlace(match[1], {**_LIMITS, **({"aws_allow_http": "true"} if is_plain_http else {})})


def object_table(spark: Any, table: str) -> "RemoteTable | None":
    """The table for delta-rs, if it is in an object store and the session has not been started; None: use Spark."""
    if is_provided() or not is_unstarted(spark):
        return None
    place = plan_object_place(table, os.environ)
    if place is None:
        return None
    from dmdelta.lakehouse.access.delta_rs.remote_table import RemoteTable  # noqa: PLC0415 - takes 50 MB

    return RemoteTable(table, place.uri, place.options)


@dataclass(frozen=True, slots=True)
class ObjectMetadata:
    """Reads a table of dm_meta with delta-rs, and with Spark what delta-rs cannot read. Spark writes it."""

    reader: "RemoteTable"
    spark: MetadataAccess

    def commits(self, limit: int | None) -> list[Commit]:
        """The newest `limit` commits, newest first."""
        return self._read(lambda table: table.commits(limit))

    def newest(self, by: NewestBy, conditions: Sequence[Condition] = ()) -> list[MetadataRow]:
        """The newest row of each key among those that fulfil all conditions."""
        return self._read(lambda table: table.newest(by, conditions))

    def rows(self, conditions: Sequence[Condition] = (), columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows that fulfil all conditions, in no particular order; only these columns, or all."""
        return self._read(lambda table: table.rows(conditions, columns))

    def append(self, rows: Sequence[Mapping[str, Any]], tag: CommitTag | None) -> OwnCommit | None:
        """Append rows in one commit."""
        return self.spark.append(rows, tag)

    def delete(self, condition: RowCondition) -> None:
        """Delete the rows that fulfil a condition."""
        self.spark.delete(condition)

    def compact(self) -> tuple[int, int]:
        """Rewrite small files into large ones. Returns the numbers of removed and added files."""
        return self.spark.compact()

    def _read(self, read: "Callable[[RemoteTable | MetadataAccess], Rows]") -> "Rows":
        """Read with delta-rs, or else with Spark."""
        try:
            return read(self.reader)
        except UnsupportedTable as error:
            log.info("delta-rs cannot read the table, Spark is started", why=error.message)
            return read(self.spark)
