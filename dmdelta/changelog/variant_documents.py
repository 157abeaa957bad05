"""JSON documents with dates and times as MySQL writes them: six digits of a second, unlike Spark's `to_json`.

A document from the log keeps the type of such a value in its VARIANT. One from a snapshot has MySQL's text of it. Both
have the same text here.
Format: as `model.variant_types`.
"""

import json
import struct
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from dmdelta.errors import LakehouseError
from dmdelta.model import variant_types as types

MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
"""Regular expression: text without it has no date with a time."""
_NUMBERS = {
    types.INT8: "<b",
    types.INT16: "<h",
    types.INT32: "<i",
    types.INT64: "<q",
    types.DOUBLE: "<d",
    types.FLOAT: "<f",
    types.DATE: "<i",
    types.TIMESTAMP: "<q",
    types.TIMESTAMP_NTZ: "<q",
}
_DECIMALS = {types.DECIMAL4: 4, types.DECIMAL8: 8, types.DECIMAL16: 16}
_WORDS = {types.NULL[0]: "null", types.TRUE[0]: "true", types.FALSE[0]: "false"}
_SHORT, _OBJECT = 1, 2


def document_text(data: bytes, at: int, keys: Sequence[str]) -> str:
    """The JSON text of the VARIANT value that starts at `at`.

    Args:
        keys: the dictionary of its metadata.

    Raises:
        LakehouseError: a type that no document has.
    """
    head = data[at]
    basic = head & 3
    if basic == _SHORT:
        return _quoted(data[at + 1 : at + 1 + (head >> 2)])
    if basic == 0:
        return _scalar(data, at + 1, head)
    named = basic == _OBJECT
    width, id_width = (head >> 2 & 3) + 1, (head >> 4 & 3) + 1 if named else 0
    count_width = 4 if head >> (6 if named else 4) & 1 else 1
    count = _number(data, at + 1, count_width)
    ids = at + 1 + count_width
    offsets = ids + count * id_width
    values = offsets + (count + 1) * width
    parts = (
        document_text(data, values + _number(data, offsets + place * width, width), keys) for place in range(count)
    )
    if not named:
        return f"[{','.join(parts)}]"
    names = (keys[_number(data, ids + place * id_width, id_width)] for place in range(count))
    members = (f"{json.dumps(name, ensure_ascii=False)}:{part}" for name, part in zip(names, parts, strict=True))
    return f"{{{','.join(members)}}}"


def _scalar(data: bytes, at: int, kind: int) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _DECIMALS:
        unscaled = int.from_bytes(data[at + 1 : at + 1 + _DECIMALS[kind]], "little", signed=True)
        return format(Decimal(f"{unscaled}E-{data[at]}"), "f")
    if kind == types.STRING:
        size = _number(data, at, 4)
        return _quoted(data[at + 4 : at + 4 + size])
    if kind not in _NUMBERS:
        raise LakehouseError("a document in bronze has an unknown type", hint="report this to the project", kind=kind)
    number = struct.unpack_from(_NUMBERS[kind], data, at)[0]
    if kind == types.DATE:
        return f'"{np.datetime64(number, "D")}"'
    if kind in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        return f'"{np.datetime64(number, "us")}"'.replace("T", " ")
    return repr(number)


def _quoted(text: bytes) -> str:
    return json.dumps(text.decode(), ensure_ascii=False)


def _number(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")
