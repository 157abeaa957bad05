"""The whole spec of a task."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, field_validator

from dmdelta.config.block_allow_list import BlockAllowListConfig
from dmdelta.config.lakehouse import LakehouseConfig
from dmdelta.config.section import Section
from dmdelta.config.source import SourceConfig
from dmdelta.config.syncer import SyncerConfig


class TaskSpec(Section):
    """One task: what is read, what takes part, how it is applied and where it lands."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=64)]
    """Name of the task: part of its tables and commits. Never change it afterwards."""

    task_mode: Literal["incremental"] = "incremental"
    """`incremental`: follow the binlog from a position on."""

    sources: Annotated[tuple[SourceConfig, ...], Field(min_length=1)]
    """The servers or archives to read."""

    block_allow_list: BlockAllowListConfig = BlockAllowListConfig()
    """Which schemas and tables take part; all by default."""

    syncer: SyncerConfig = SyncerConfig()
    """How changes are applied."""

    lakehouse: LakehouseConfig
    """Where the Delta tables stand."""

    @field_validator("sources")
    @classmethod
    def _unique_ids(cls, sources: tuple[SourceConfig, ...]) -> tuple[SourceConfig, ...]:
        twice = [name for name, count in Counter(source.source_id for source in sources).items() if count > 1]
        if twice:
            raise ValueError(f"source-id {twice[0]!r} occurs twice")
        return sources
