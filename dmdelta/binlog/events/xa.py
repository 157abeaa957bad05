"""XA transaction identifiers in the notation of MySQL's binlog: `X'<gtrid hex>',X'<bqual hex>',<format id>`.

Format of the XA_PREPARE event: mysql/binlog/event/control_events.h (`XA_prepare_event`); MariaDB writes the same.
"""

import re
from dataclasses import dataclass
from struct import Struct

from dmdelta.binlog.events.header import HEADER_SIZE
from dmdelta.errors import CorruptBinlog

_PREPARE = Struct("<BIII")
_PART = r"(?:[xX]'((?:[0-9a-fA-F]{2})*)'|0x([0-9a-fA-F]+)|'((?:[^'\\]|''|\\.)*)'|\"((?:[^\"\\]|\"\"|\\.)*)\")"
_XID = re.compile(rf"\s*{_PART}\s*(?:,\s*{_PART}\s*(?:,\s*([0-9]{{1,20}})\s*)?)?(?![0-9,])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class XaPrepare:
    """The end of an XA transaction's work: prepared, or committed at once (`one_phase`)."""

    xid: str
    one_phase: bool


def xid_text(gtrid: bytes, bqual: bytes, format_id: int) -> str:
    """The canonical text of an XA transaction's identifier."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"


def parse_xa_prepare(event: bytes) -> XaPrepare:
    """Parse the XA_PREPARE event (header included, checksum not).

    Raises:
        CorruptBinlog: the event is too short.
    """
    if len(event) < HEADER_SIZE + _PREPARE.size:
        raise CorruptBinlog("an XA_PREPARE event is truncated", hint="report this event to the project")
    one_phase, format_id, gtrid, bqual = _PREPARE.unpack_from(event, HEADER_SIZE)
    data = event[HEADER_SIZE + _PREPARE.size :]
    if len(data) < gtrid + bqual:
        raise CorruptBinlog("an XA_PREPARE event is truncated", hint="report this event to the project")
    return XaPrepare(xid_text(data[:gtrid], data[gtrid : gtrid + bqual], format_id), bool(one_phase))


def _part(groups: tuple[str | None, ...]) -> bytes:
    if groups[0] is not None:
        return bytes.fromhex(groups[0])
    if groups[1] is not None:
        return bytes.fromhex(groups[1].zfill(len(groups[1]) + len(groups[1]) % 2))
    if groups[2] is not None:
        return groups[2].replace("''", "'").encode()
    return (groups[3] or "").replace('""', '"').encode()


def parse_xid(text: str) -> str | None:
    """The canonical identifier at the start of `text` (the part after XA START and similar verbs), or None."""
    match = _XID.match(text)
    if match is None:
        return None
    groups = match.groups()
    return xid_text(_part(groups[:4]), _part(groups[4:8]), int(groups[8] or 1))
