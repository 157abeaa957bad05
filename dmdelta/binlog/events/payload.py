"""Compressed transactions: a stream of events inside one event, decompressed in chunks.

Format: mysql/binlog/event/codecs/binary.cpp (`Transaction_payload_event`): fields (type, length, value as packed
integers) up to a zero type, then the compressed bytes. Inner events have no checksum.
"""

from collections.abc import Iterator
from typing import Protocol

import zstandard

from dmdelta.binlog.events.header import HEADER, HEADER_SIZE
from dmdelta.binlog.wire import packed_int
from dmdelta.errors import CorruptBinlog, UnsupportedEvent

READ_SIZE = 256 << 10
_END, _SIZE, _COMPRESSION, _UNCOMPRESSED = 0, 1, 2, 3
_ZSTD, _NONE = 0, 255
_HINT = "the segment is damaged: delete it; the relay fetches it again"


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def inner_events(body: Readable) -> Iterator[bytes]:
    """The events of a payload, each with its header and without a checksum. Holds one event and one chunk in memory.

    Raises:
        CorruptBinlog: fields or events are truncated, or the stream is invalid.
        UnsupportedEvent: a compression other than zstd and none.
    """
    compression, total = _read_fields(body)
    if compression not in (_ZSTD, _NONE):
        raise UnsupportedEvent(
            f"transaction payload with compression {compression}", hint="set binlog_transaction_compression=OFF"
        )
    source: Readable = body
    if compression == _ZSTD:
        source = zstandard.ZstdDecompressor().stream_reader(body, read_size=READ_SIZE, read_across_frames=True)  # type: ignore[arg-type]
    try:
        yield from _split(source, total)
    except zstandard.ZstdError as damage:
        raise CorruptBinlog("a compressed transaction cannot be decompressed", hint=_HINT) from damage


def _split(source: Readable, total: int | None) -> Iterator[bytes]:
    """The events of a stream; `total`: their expected size in bytes."""
    buffer, at, size = b"", 0, 0
    while True:
        need = HEADER_SIZE
        if len(buffer) - at >= HEADER_SIZE:
            need = HEADER.unpack_from(buffer, at)[3]
            if need < HEADER_SIZE:
                raise CorruptBinlog(f"a compressed transaction has an event of {need} bytes", hint=_HINT)
        if len(buffer) - at < need:
            buffer, at = _filled(source, buffer[at:], need), 0
            if len(buffer) >= need:
                continue
            if buffer:
                raise CorruptBinlog("a compressed transaction ends inside an event", hint=_HINT)
            if total not in (None, size):
                raise CorruptBinlog(f"a compressed transaction has {size} bytes, not {total}", hint=_HINT)
            return
        yield buffer[at : at + need]
        at += need
        size += need


def _filled(source: Readable, buffered: bytes, need: int) -> bytes:
    """`buffered` and the bytes that follow it: at least `need` bytes, fewer only at the end."""
    # In chunks: a damaged event may have a size of gigabytes, which is not allocated before the bytes are read.
    pieces, have = [buffered], len(buffered)
    while have < need:
        piece = source.read(READ_SIZE)
        if not piece:
            break
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


def _read_fields(body: Readable) -> tuple[int, int | None]:
    """The compression, and the total size of the events if the fields contain it."""
    compression, total = _NONE, None
    while True:
        kind = _read_int(body)
        if kind == _END:
            return compression, total
        size = _read_int(body)
        value = _exactly(body, size)
        if kind == _COMPRESSION:
            compression = packed_int(value, 0)[0]
        elif kind == _UNCOMPRESSED:
            total = packed_int(value, 0)[0]


def _read_int(body: Readable) -> int:
    first = _exactly(body, 1)[0]
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    return first if size is None else int.from_bytes(_exactly(body, size), "little")


def _exactly(body: Readable, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = body.read(min(size - len(data), READ_SIZE))  # a damaged size may exceed any memory
        if not piece:
            raise CorruptBinlog("a compressed transaction is truncated", hint=_HINT)
        data += piece
    return data
