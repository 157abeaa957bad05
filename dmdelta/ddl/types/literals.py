"""The literal after DEFAULT, and the text that a column stores for it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
"""A number as the servers accept it."""
_PLAIN_NUMBER = re.compile(r"0|-?[1-9]\d*|-?(?:0|[1-9]\d*)\.\d*[1-9]\d*")
"""A number that the servers convert to this very text."""
_ASCII_SUPERSETS = frozenset({"ascii", "latin1", "utf8mb3", "utf8mb4"})
_BITS = {2: 1, 16: 4}


class LiteralKind(Enum):
    """The kind of a literal."""

    TEXT = "text"
    """In quotes."""
    NUMBER = "number"
    BYTES = "bytes"
    """A hexadecimal or a bit literal: a number for a numeric column, else bytes."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal default.

    Attributes:
        text: without quotes and escapes; a number as it is written, of bytes in base ten.
        size: of bytes: how many.
        base: of bytes: of their digits.
    """

    text: str
    kind: LiteralKind = LiteralKind.TEXT
    size: int = 0
    base: int = 0

    @property
    def data(self) -> bytes:
        """The bytes of a literal of this kind."""
        return int(self.text).to_bytes(self.size, "big")


def bytes_literal(digits: str, base: int) -> Literal | None:
    """The value of `x'…'` (base 16) or `b'…'` (base 2); None if the digits are invalid."""
    try:
        value = int(digits, base) if digits else 0
    except ValueError:
        return None
    return Literal(str(value), LiteralKind.BYTES, (len(digits) * _BITS[base] + 7) // 8, base)


def text_in_charset(literal: Literal, charset: str | None) -> str | None:
    """The text that a text column stores; None if it is unknown.

    Args:
        charset: of the column, None if it is unknown. Bytes are text in it.
    """
    if literal.kind is LiteralKind.NUMBER:
        text = literal.text.removeprefix("+")
        return text if _PLAIN_NUMBER.fullmatch(text) else None
    if literal.kind is LiteralKind.TEXT:
        return literal.text
    if charset in ("utf8mb3", "utf8mb4") or (charset in _ASCII_SUPERSETS and literal.data.isascii()):
        try:
            return literal.data.decode()
        except UnicodeDecodeError:
            return None
    return None


def named_member(members: Sequence[str], text: str) -> str | None:
    """The member of an ENUM or SET that the server finds for a text; None if that depends on the collation."""
    if not text.isascii() or not all(member.isascii() for member in members):
        return text if text in members else None
    found = [member for member in members if member.lower() == text.lower()]
    return found[0] if len(found) == 1 else None


def named_members(members: Sequence[str], text: str) -> str | None:
    """The value of a SET for a text: each member once, in the order of the definition; None as for `named_member`."""
    named = [named_member(members, part) for part in text.split(",")] if text else []
    return None if None in named else ",".join(member for member in members if member in named)
