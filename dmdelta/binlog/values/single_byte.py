"""Single-byte character sets of MySQL for which Python has no equal codec, as `charmap` tables of 256 characters.

U+FFFE marks a byte without a character. Source: the conversions of each byte by MySQL 8.0.31 and MariaDB 10.11.
"""

# ruff: noqa: RUF001 - the characters are the data
_ASCII = "".join(map(chr, range(0x80)))
_C1 = "".join(map(chr, range(0x80, 0xA0)))


def _latin1() -> str:
    """cp1252 with its five undefined codes as C1 controls."""
    high = (bytes((code,)).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0))
    return _ASCII + "".join(high) + "".join(map(chr, range(0xA0, 0x100)))


def _patched(codec: str, changes: dict[int, str]) -> str:
    """One of Python's codecs with other characters for some bytes."""
    return "".join(changes.get(code) or bytes((code,)).decode(codec, "ignore") or "\ufffe" for code in range(256))


_ARMSCII8 = (
    _ASCII
    + _C1
    + ("\xa0❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'")
)
_DEC8 = (
    _ASCII
    + _C1
    + (
        "\xa0¡¢£\ufffe¥\ufffe§¤©ª«\ufffe\ufffe\ufffe\ufffe°±²³\ufffeµ"
        "¶·\ufffe¹º»¼½\ufffe¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\ufffeÑÒÓÔÕÖŒØÙÚÛÜŸ"
        "\ufffeßàáâãäåæçèéêëìíîï\ufffeñòóôõöœøùúûüÿ\ufffe\ufffe"
    )
)
_HP8 = (
    _ASCII
    + _C1
    + ("\xa0ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíøæÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠšÚŸÿÞþ·µ¶¾—¼½ªº«■»±\ufffe")
)
_GEOSTD8 = _ASCII + (
    "€\ufffe‚\ufffe„…†‡\ufffe‰\ufffe‹\ufffe\ufffe\ufffe\ufffe"
    "\ufffe‘’“”•–—\ufffe\ufffe\ufffe›\ufffe\ufffe\ufffe\ufffe\xa0"
    "¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³´µ¶·¸¹º»¼½¾¿აბგდევზჱთიკლმნჲოპჟრსტჳუფქღ"
    "ყშჩცძწჭხჴჯჰჵ\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe"
    "\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe"
    "\ufffe\ufffe\ufffe\ufffe\ufffe№\ufffe\ufffe"
)
_KEYBCS2 = _ASCII + (
    "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗"
    "╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈"
    "°∙·√ⁿ²■\xa0"
)
_SWE7 = _ASCII.translate(dict(zip(map(ord, "@[\\]^`{|}~\x7f"), "ÉÄÖÅÜéäöåü\ufffe", strict=True))) + "\ufffe" * 128

TABLES: dict[str, str] = {
    "latin1": _latin1(),
    "armscii8": _ARMSCII8,
    "dec8": _DEC8,
    "hp8": _HP8,
    "geostd8": _GEOSTD8,
    "keybcs2": _KEYBCS2,
    "swe7": _SWE7,
    "cp866": _patched("cp866", {0xFC: "ⁿ", 0xFD: "²"}),
    "greek": _patched("iso8859_7", {0xA1: "ʽ", 0xA2: "ʼ"}),
    "hebrew": _patched("iso8859_8", {0xAF: "‾"}),
    "koi8u": _patched("koi8_u", {0x95: "•"}),
}
"""By MySQL's name of the character set."""
