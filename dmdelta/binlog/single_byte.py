"""Single-byte character sets of MySQL that Python has no equal codec for, as `charmap` tables of 256 characters.

U+FFFE marks a byte without a character. Source: share/charsets/*.xml of the server.
"""


def _latin1() -> str:
    high = bytes(range(0x80, 0xA0)).decode("cp1252", "replace")
    held = "".join(chr(0x80 + at) if char == "�" else char for at, char in enumerate(high))
    return "".join(map(chr, range(0x80))) + held + "".join(map(chr, range(0xA0, 0x100)))


TABLES: dict[str, str] = {"latin1": _latin1()}
