"""Single-byte character sets of MySQL for which Python has no equal codec, as `charmap` tables of 256 characters.

U+FFFE marks a byte without a character. Source: the conversions of each byte by MySQL 8.0.31 and MariaDB 10.11.
"""

# ruff: noqa: RUF001 - the characters are the data
_ASCII = "".join(map(chr, range(0x80)))
_C1 = "".join(map(chr, range(0x80, 0xA0)))


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
_SWE7 = _ASCII.translate(str.maketrans("@[\\]^`{|}~\x7f", "ÉÄÖÅÜéäöåü\ufffe")) + "\ufffe" * 128
_PATCHED: dict[str, tuple[str, dict[int, str]]] = {
    "latin1": ("cp1252", {code: chr(code) for code in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "cp866": ("cp866", {0xFC: "ⁿ", 0xFD: "²"}),
    "greek": ("iso8859_7", {0xA1: "ʽ", 0xA2: "ʼ"}),
    "hebrew": ("iso8859_8", {0xAF: "‾"}),
    "koi8u": ("koi8_u", {0x95: "•"}),
}
"""One of Python's codecs with other characters for some bytes."""

TABLES: dict[str, str] = {
    "armscii8": _ARMSCII8,
    "dec8": _DEC8,
    "hp8": _HP8,
    "geostd8": _GEOSTD8,
    "keybcs2": _KEYBCS2,
    "swe7": _SWE7,
    **{
        charset: "".join(changes.get(code) or bytes((code,)).decode(codec, "ignore") or "\ufffe" for code in range(256))
        for charset, (codec, changes) in _PATCHED.items()
    },
}
"""By MySQL's name of the character set."""
