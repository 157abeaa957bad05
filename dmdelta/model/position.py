"""A position in a source's log."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from dmdelta.errors import ConfigError

SNAPSHOT = "snapshot"
_TEXT_FORM = re.compile(r"(-?\d+)/(.+\.\d+):(\d+)")
_FILE_NUMBER = re.compile(r"\.(\d+)$")
FAR = "end.999999"
"""A file name after all files of an epoch."""
FILE_SHIFT = 40


def file_number(binlog_file: str) -> int:
    """`binlog.000042` → 42.

    Raises:
        ConfigError: the name does not end in a dot and digits.
    """
    match = _FILE_NUMBER.search(binlog_file)
    if match is None:
        raise ConfigError(
            f"{binlog_file!r} is not a binlog file name", hint="a binlog file name ends in a number: binlog.000001"
        )
    return int(match.group(1))


def numbered_file(name: str, number: int) -> str:
    """The file with this number in the log of file `name`: `binlog.000009`, 10 → `binlog.000010`."""
    stem, _, digits = name.rpartition(".")
    return f"{stem}.{number:0{len(digits)}d}"


def seq_of(binlog_file: str, offset: int) -> int:
    """The bronze `seq` of the event at `offset` (bytes) of a file: file number × 2^40 + offset."""
    return (file_number(binlog_file) << FILE_SHIFT) + offset


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """The event boundary at byte `offset` of `binlog_file` in `epoch`. Totally ordered within a source.

    As the end of a range it is exclusive: the next event to read starts here.
    """

    epoch: int
    binlog_file: str
    offset: int

    @classmethod
    def of_chunk(cls, epoch: int, number: int) -> "Position":
        """The start of a snapshot chunk: a snapshot is a log of its own, whose files are its chunks."""
        return cls(epoch, f"{SNAPSHOT}.{number:06d}", 0)

    @property
    def chunk(self) -> int | None:
        """The chunk that starts here; None in a server's log."""
        name, _, number = self.binlog_file.partition(".")
        # A server may use this name for its log; but no event is at offset 0.
        return int(number) if name == SNAPSHOT and self.offset == 0 else None

    @property
    def seq(self) -> int:
        return seq_of(self.binlog_file, self.offset)

    @property
    def key(self) -> tuple[int, int]:
        return (self.epoch, self.seq)

    def __lt__(self, other: "Position") -> bool:
        return self.key < other.key

    def __str__(self) -> str:
        return f"{self.epoch}/{self.binlog_file}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Parse the result of `str`.

        Raises:
            ConfigError: the text is not a position.
        """
        match = _TEXT_FORM.fullmatch(text)
        if match is None:
            raise ConfigError(f"{text!r} is not a position", hint="write it as in error messages: 1/binlog.000001:4711")
        return cls(int(match[1]), match[2], int(match[3]))

    def to_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "file": self.binlog_file, "pos": self.offset}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Position":
        return cls(fields["epoch"], fields["file"], fields["pos"])
