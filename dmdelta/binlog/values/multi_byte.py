"""Multi-byte character sets for which MySQL and Python's codec differ, decoded character by character.

Source: the conversions of every two- and three-byte code by MySQL 8.0.31 and MariaDB 10.11.
"""

# ruff: noqa: RUF001 - the characters are the data
import re
from collections.abc import Callable

_EUC = re.compile(rb"[\x00-\x7f]+|\x8f[\xa1-\xfe]{2}|[\x8e\xa1-\xfe][\xa1-\xfe]|.", re.DOTALL)
_LEAD_AND_TRAIL = re.compile(rb"[\x00-\x7f]+|[\x81-\xfe][\x40-\xff]|.", re.DOTALL)
_USER_ROW, _COLUMNS, _FIRST = 0xF5, 94, 0xA1
_USER_AREA = 0xE000
_USER_AREA_3 = _USER_AREA + 10 * _COLUMNS
"""The start of the user-defined rows of the three-byte codes."""
_IBM_FIRST = (0xF3 - _FIRST) * _COLUMNS + 0xF3 - _FIRST
_IBM = (
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤\ufa0e咊坙\ufa0f\ufa10增寬峵嵓\ufa11德悅愠敎昻"
    "晥\ufa12\uf929栁\ufa13\ufa14橫櫢淸淲瀨\ufa15\ufa16甁皂皞\ufa17礰\ufa18\ufa19"
    "\ufa1a\ufa1b竧\ufa1c\ufa1d綠緖\ufa1e荢\ufa1f薰\ufa20\ufa21蠇\ufa22譿賴赶"
    "\ufa23\ufa24\ufa25郞\ufa26鄕\ufa27\ufa28閒\uf9dc\ufa29霻靍靑\ufa2a\ufa2b"
    "\ufa2c馞髙魲\ufa2d黑"
)
"""The IBM extension characters of eucjpms, starting at code 8F F3 F3."""


class _Characters(dict[bytes, str]):
    """Decoded characters by their bytes, filled on demand."""

    def __init__(self, decode: Callable[[bytes], str]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, code: bytes) -> str:
        character = code.decode("ascii") if code.isascii() else self._decode(code)
        if not code.isascii():
            self[code] = character
        return character


def _decoder(pattern: re.Pattern[bytes], character: Callable[[bytes], str]) -> Callable[[bytes], str]:
    characters = _Characters(character)
    return lambda data: "".join([characters[code] for code in pattern.findall(data)])


def _user_defined(code: bytes) -> str | None:
    if len(code) == 2 and code[0] >= _USER_ROW:
        return chr(_USER_AREA + (code[0] - _USER_ROW) * _COLUMNS + code[1] - _FIRST)
    if len(code) == 3 and code[1] >= _USER_ROW:
        return chr(_USER_AREA_3 + (code[1] - _USER_ROW) * _COLUMNS + code[2] - _FIRST)
    return None


def _ujis(code: bytes) -> str:
    return _user_defined(code) or ("\\" if code == b"\xa1\xc0" else code.decode("euc_jp"))


def _eucjpms(code: bytes) -> str:
    """Two bytes are cp932's characters; three are JIS X 0212's and the IBM extensions."""
    defined = _user_defined(code)
    if defined is not None:
        return defined
    if len(code) == 2:
        if code[0] == 0x8E:
            return code[1:].decode("cp932")
        row, column = code[0] - _FIRST, code[1] - _FIRST
        lead = (row >> 1) + (0x81 if row < 62 else 0xC1)
        trail = column + 0x9F if row & 1 else column + 0x40 + (column >= 0x3F)
        return bytes((lead, trail)).decode("cp932")
    if len(code) == 3:
        place = (code[1] - _FIRST) * _COLUMNS + code[2] - _FIRST - _IBM_FIRST
        if place >= 0:
            return _IBM[place]
        return {b"\x8f\xa2\xb7": "～", b"\x8f\xa2\xc3": "￤"}.get(code) or code.decode("euc_jp")
    return code.decode("euc_jp")


def _sjis(code: bytes) -> str:
    return "\\" if code == b"\x81\x5f" else code.decode("shift_jis")


_ETEN = dict(zip((bytes((0xF9, trail)) for trail in range(0xD6, 0xDD)), "碁銹裏墻恒粧嫺", strict=True))


def _big5(code: bytes) -> str:
    return _ETEN.get(code) or code.decode("big5")


DECODERS: dict[str, Callable[[bytes], str]] = {
    "ujis": _decoder(_EUC, _ujis),
    "eucjpms": _decoder(_EUC, _eucjpms),
    "sjis": _decoder(re.compile(rb"[\x00-\x7f]+|[\x81-\x9f\xe0-\xfc][\x40-\xfc]|.", re.DOTALL), _sjis),
    "big5": _decoder(_LEAD_AND_TRAIL, _big5),
}
"""By MySQL's name of the character set; they raise UnicodeDecodeError for codes without a character."""
