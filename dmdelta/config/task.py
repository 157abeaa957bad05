"""The whole spec of a task."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from dmdelta.config.block_allow_list import BlockAllowListConfig
from dmdelta.config.lakehouse import LakehouseConfig
from dmdelta.config.section import Section, is_uri
from dmdelta.config.snapshot import SnapshotConfig
from dmdelta.config.source import SourceConfig
from dmdelta.config.syncer import SyncerConfig


class TaskSpec(Section):
    """One task: what is read, what takes part, how it is applied and where it lands."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=64)]
    """Name of the task: part of its tables and commits. Never change it afterwards."""

    task_mode: Literal["incremental", "full", "all"] = "incremental"
    """`incremental`: follow the binlog from a position on. `all`: on its first start, load the tables as they are, then
    follow the binlog; a source with `meta` begins there without a load. `full`: as `all`, but end once the tables are
    loaded and at one position."""

    sources: Annotated[tuple[SourceConfig, ...], Field(min_length=1)]
    """The servers or archives to read."""

    ignore_checking_items: tuple[str, ...] = ()
    """Checks whose findings do not count, by the names that `dmdelta check` shows; `all` for all of them."""

    block_allow_list: BlockAllowListConfig = BlockAllowListConfig()
    """Which schemas and tables take part; all by default."""

    syncer: SyncerConfig = SyncerConfig()
    """How changes are applied."""

    snapshot: SnapshotConfig = SnapshotConfig()
    """How tables are loaded before the binlog is followed."""

    lakehouse: LakehouseConfig
    """Where the Delta tables stand."""

    def relay_dir(self, source: SourceConfig) -> str:
        """The folder below which a source's segments are kept: its own, or `relay` in the lakehouse's root."""
        if source.relay is not None:
            return source.relay.dir
        if self.lakehouse.root is None or is_uri(self.lakehouse.root):
            raise ValueError(f"source {source.source_id!r} needs relay.dir: the lakehouse is no folder of this machine")
        return str(Path(self.lakehouse.root) / "relay")

    def is_ignored(self, check: str) -> bool:
        """Whether the findings of a check do not count."""
        return check in self.ignore_checking_items or "all" in self.ignore_checking_items

    def loads(self, source: SourceConfig) -> bool:
        """Whether a source's first start is a full load: its tables as they are, before its log."""
        return self.task_mode != "incremental" and source.meta is None

    @model_validator(mode="after")
    def _relays_have_folders(self) -> "TaskSpec":
        for source in self.sources:
            self.relay_dir(source)
        return self

    @model_validator(mode="after")
    def _servers_are_loaded(self) -> "TaskSpec":
        for source in self.sources:
            if self.task_mode != "incremental" and source.host is None:
                raise ValueError(
                    f"source {source.source_id!r} is an archive, which has no tables to load: task-mode is incremental"
                )
            if self.task_mode == "full" and source.meta is not None:
                raise ValueError(
                    f"source {source.source_id!r} has meta, so that nothing would be loaded: use task-mode all"
                )
        return self

    @field_validator("sources")
    @classmethod
    def _unique_ids(cls, sources: tuple[SourceConfig, ...]) -> tuple[SourceConfig, ...]:
        twice = [name for name, count in Counter(source.source_id for source in sources).items() if count > 1]
        if twice:
            raise ValueError(f"source-id {twice[0]!r} occurs twice")
        return sources
