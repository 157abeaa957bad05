"""Partial JSON updates: an after image whose JSON columns may be diffs against the before image.

Format: sql/rpl_record.cc (value options, partial bits) and sql-common/json_diff.cc of MySQL 8.0 (the diffs).
"""

import json
import re
from struct import error as StructError  # noqa: N812 - a class
from typing import Any, NamedTuple, TypeAlias

from dmdelta.binlog.rows.image import ImageDecoder, convert
from dmdelta.binlog.values import jsonb, variant
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.binlog.wire import bitmap_size, packed_bytes, packed_int, set_bits
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model import variant_types

_PARTIAL_JSON = 1
_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_LEG = re.compile(r"""\s*(?:\.\s*(?:"((?:[^"\\]|\\.)*)"|([^\s.\["]+))|\[\s*(\d+)\s*\])""")

Leg = bytes | int
"""A member name or an array index."""
Tree: TypeAlias = dict[bytes, Any] | list[Any] | bytes
"""A mutable JSON document; leaves are VARIANT values."""


class Diff(NamedTuple):
    """One change of a document; `value` is binary JSON, empty for a removal."""

    operation: int
    path: tuple[Leg, ...]
    value: bytes


def partial_after(
    event: bytes, at: int, before: dict[int, bytes | None], decoder: ImageDecoder
) -> tuple[dict[int, bytes], int]:
    """The VARIANT values of the after image at `at` by column number, and the position after it.

    Raises:
        UnsupportedEvent: a diff against a document that the before image does not contain.
        CorruptBinlog: a diff that does not fit the document.
    """
    table = decoder.table
    options, at = packed_int(event, at)
    json_columns = [number for number, codec in enumerate(table.codecs) if codec.is_json]
    partial: set[int] = set()
    if options & _PARTIAL_JSON:
        size = bitmap_size(len(json_columns))
        partial = {json_columns[bit] for bit in set_bits(event[at : at + size], len(json_columns))}
        at += size
    raws, at = decoder.raws(event, at)
    changed = {number: raw for number, raw in raws.items() if number in partial and raw is not None}
    values = convert(table, {number: raw for number, raw in raws.items() if number not in changed})
    for number, diffs in changed.items():
        document = before.get(number)
        if document is None:
            raise UnsupportedEvent(
                f"{table.schema}.{table.schema.columns[number].name}: a JSON diff without the previous document",
                hint="set binlog_row_value_options='' or binlog_row_image=FULL",
            )
        try:
            values[number] = _changed(document, parse_diffs(diffs), table.keys)
        except (StructError, IndexError, ValueError, RecursionError) as damage:
            raise jsonb.unreadable(damage) from damage
    return values, at


def parse_diffs(data: bytes) -> list[Diff]:
    """The diffs of one column."""
    diffs: list[Diff] = []
    at = 0
    while at < len(data):
        operation = data[at]
        path, at = packed_bytes(data, at + 1)
        value = b""
        if operation != _REMOVE:
            value, at = packed_bytes(data, at)
        diffs.append(Diff(operation, parse_path(path.decode()), value))
    return diffs


def parse_path(path: str) -> tuple[Leg, ...]:
    """`$.a."b c"[3]` → its legs.

    Raises:
        CorruptBinlog: an invalid path.
    """
    legs: list[Leg] = []
    at = 1
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise CorruptBinlog("a JSON diff has an invalid path", hint="report this event to the project")
        quoted, plain, index = match.groups()
        if index is not None:
            legs.append(int(index))
        else:
            legs.append((json.loads(f'"{quoted}"') if quoted is not None else plain).encode())
        at = match.end()
    return tuple(legs)


def _changed(document: bytes, diffs: list[Diff], keys: KeyDictionary) -> bytes:
    tree: Tree = _tree(document[0], 1, document, keys) if document else variant_types.NULL
    for diff in diffs:
        jsonb.json_value(diff.value, keys)  # validates it; the document was validated as part of its row
        value = _tree(diff.value[0], 1, diff.value, keys) if diff.value else variant_types.NULL
        try:
            tree = _apply(tree, diff.operation, diff.path, value)
        except (KeyError, IndexError, TypeError) as mismatch:
            raise CorruptBinlog(
                "a JSON diff does not fit its document", hint="report this event to the project"
            ) from mismatch
    return _encoded(tree, keys)


def _tree(kind: int, at: int, data: bytes, keys: KeyDictionary) -> Tree:
    if kind in (jsonb.SMALL_OBJECT, jsonb.LARGE_OBJECT):
        members = jsonb.members(data, at, large=kind == jsonb.LARGE_OBJECT)
        return {name: _tree(*entry, data, keys) for name, entry in members}
    if kind in (jsonb.SMALL_ARRAY, jsonb.LARGE_ARRAY):
        return [_tree(*entry, data, keys) for entry in jsonb.elements(data, at, large=kind == jsonb.LARGE_ARRAY)]
    return jsonb.value(kind, at, data, keys)


def _encoded(tree: Tree, keys: KeyDictionary) -> bytes:
    if isinstance(tree, bytes):
        return tree
    if isinstance(tree, list):
        return variant.array_piece([_encoded(item, keys) for item in tree])
    return variant.object_piece([(keys.id_of(name), _encoded(tree[name], keys)) for name in sorted(tree)])


def _apply(tree: Any, operation: int, path: tuple[Leg, ...], value: Tree) -> Any:
    """The tree with one change; a leg [0] of a value that is not an array is the value itself, as in the server."""
    if not path:
        return value
    leg, rest = path[0], path[1:]
    if isinstance(leg, int) and not isinstance(tree, list):
        if leg == 0 and operation == _REPLACE:
            return _apply(tree, operation, rest, value)
        if not rest and operation == _INSERT:
            return [value, tree] if leg == 0 else [tree, value]
    if isinstance(leg, bytes) != isinstance(tree, dict):
        raise TypeError("leg and document do not match")
    if rest:
        tree[leg] = _apply(tree[leg], operation, rest, value)
    elif operation == _REMOVE:
        del tree[leg]
    elif operation == _INSERT and isinstance(tree, list) and isinstance(leg, int):
        tree.insert(leg, value)
    else:
        tree[leg] = value
    return tree
