"""The names of collation IDs in MySQL 5.7 to 9 and MariaDB.

Source: information_schema.COLLATIONS of MySQL 5.7.22 and 8.0.31 and COLLATION_CHARACTER_SET_APPLICABILITY of MariaDB
10.11. The Unicode character sets have one block of 24 languages each, MariaDB's NOPAD collations are ID + 1024, its UCA
14.0.0 collations occupy blocks of 256 IDs, starting at 2048. `utf8` is `utf8mb3`, whatever the server calls it, and
MariaDB's `croatian_mysql561_ci` is MySQL's `croatian_ci`: an ID does not identify the server that wrote it.
"""

_NAMES = {
    "big5": "1 chinese_ci 84 bin",
    "latin2": "2 czech_cs 9 general_ci 21 hungarian_ci 27 croatian_ci 77 bin",
    "dec8": "3 swedish_ci 69 bin",
    "cp850": "4 general_ci 80 bin",
    "latin1": "5 german1_ci 8 swedish_ci 15 danish_ci 31 german2_ci 47 bin 48 general_ci 49 general_cs 94 spanish_ci",
    "hp8": "6 english_ci 72 bin",
    "koi8r": "7 general_ci 74 bin",
    "swe7": "10 swedish_ci 82 bin",
    "ascii": "11 general_ci 65 bin",
    "ujis": "12 japanese_ci 91 bin",
    "sjis": "13 japanese_ci 88 bin",
    "cp1251": "14 bulgarian_ci 23 ukrainian_ci 50 bin 51 general_ci 52 general_cs",
    "hebrew": "16 general_ci 71 bin",
    "tis620": "18 thai_ci 89 bin",
    "euckr": "19 korean_ci 85 bin",
    "latin7": "20 estonian_cs 41 general_ci 42 general_cs 79 bin",
    "koi8u": "22 general_ci 75 bin",
    "gb2312": "24 chinese_ci 86 bin",
    "greek": "25 general_ci 70 bin",
    "cp1250": "26 general_ci 34 czech_cs 44 croatian_ci 66 bin 99 polish_ci",
    "gbk": "28 chinese_ci 87 bin",
    "cp1257": "29 lithuanian_ci 58 bin 59 general_ci",
    "latin5": "30 turkish_ci 78 bin",
    "armscii8": "32 general_ci 64 bin",
    "utf8mb3": "33 general_ci 76 tolower_ci 83 bin 223 general_mysql500_ci 576 croatian_ci 577 myanmar_ci 578 "
    "thai_520_w2",
    "ucs2": "35 general_ci 90 bin 159 general_mysql500_ci 640 croatian_ci 641 myanmar_ci 642 thai_520_w2",
    "cp866": "36 general_ci 68 bin",
    "keybcs2": "37 general_ci 73 bin",
    "macce": "38 general_ci 43 bin",
    "macroman": "39 general_ci 53 bin",
    "cp852": "40 general_ci 81 bin",
    "utf8mb4": "45 general_ci 46 bin 608 croatian_ci 609 myanmar_ci 610 thai_520_w2",
    "utf16": "54 general_ci 55 bin 672 croatian_ci 673 myanmar_ci 674 thai_520_w2",
    "utf16le": "56 general_ci 62 bin",
    "cp1256": "57 general_ci 67 bin",
    "utf32": "60 general_ci 61 bin 736 croatian_ci 737 myanmar_ci 738 thai_520_w2",
    "geostd8": "92 general_ci 93 bin",
    "cp932": "95 japanese_ci 96 bin",
    "eucjpms": "97 japanese_ci 98 bin",
    "gb18030": "248 chinese_ci 249 bin 250 unicode_520_ci",
}
"""By character set: IDs and the part of the name after the character set."""

_NEW = (
    "255 0900_ai_ci 256 de_pb_0900_ai_ci 257 is_0900_ai_ci 258 lv_0900_ai_ci 259 ro_0900_ai_ci 260 sl_0900_ai_ci "
    "261 pl_0900_ai_ci 262 et_0900_ai_ci 263 es_0900_ai_ci 264 sv_0900_ai_ci 265 tr_0900_ai_ci 266 cs_0900_ai_ci "
    "267 da_0900_ai_ci 268 lt_0900_ai_ci 269 sk_0900_ai_ci 270 es_trad_0900_ai_ci 271 la_0900_ai_ci 273 "
    "eo_0900_ai_ci 274 hu_0900_ai_ci 275 hr_0900_ai_ci 277 vi_0900_ai_ci 278 0900_as_cs 279 de_pb_0900_as_cs 280 "
    "is_0900_as_cs 281 lv_0900_as_cs 282 ro_0900_as_cs 283 sl_0900_as_cs 284 pl_0900_as_cs 285 et_0900_as_cs 286 "
    "es_0900_as_cs 287 sv_0900_as_cs 288 tr_0900_as_cs 289 cs_0900_as_cs 290 da_0900_as_cs 291 lt_0900_as_cs 292 "
    "sk_0900_as_cs 293 es_trad_0900_as_cs 294 la_0900_as_cs 296 eo_0900_as_cs 297 hu_0900_as_cs 298 hr_0900_as_cs "
    "300 vi_0900_as_cs 303 ja_0900_as_cs 304 ja_0900_as_cs_ks 305 0900_as_ci 306 ru_0900_ai_ci 307 ru_0900_as_cs "
    "308 zh_0900_as_cs 309 0900_bin 310 nb_0900_ai_ci 311 nb_0900_as_cs 312 nn_0900_ai_ci 313 nn_0900_as_cs 314 "
    "sr_latn_0900_ai_ci 315 sr_latn_0900_as_cs 316 bs_0900_ai_ci 317 bs_0900_as_cs 318 bg_0900_ai_ci 319 "
    "bg_0900_as_cs 320 gl_0900_ai_ci 321 gl_0900_as_cs 322 mn_cyrl_0900_ai_ci 323 mn_cyrl_0900_as_cs "
)
"""New in MySQL 8, all for utf8mb4."""

_LANGUAGES = (
    *("unicode", "icelandic", "latvian", "romanian", "slovenian", "polish", "estonian", "spanish"),
    *("swedish", "turkish", "czech", "danish", "lithuanian", "slovak", "spanish2", "roman"),
    *("persian", "esperanto", "hungarian", "sinhala", "german2", "croatian", "unicode_520", "vietnamese"),
)
_BLOCKS = {"utf16": 101, "ucs2": 128, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}
_UCA14_SETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA14_LANGUAGES = dict(enumerate(["", *_LANGUAGES[1:21]])) | {23: "vietnamese", 24: "croatian"}
_UCA14_KINDS = ("ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs")
_UCA14 = 2048
_NOPAD = 1024


_BY_ID = {
    63: "binary",
    **{
        int(number): f"{charset}_{rest}"
        for charset, text in (*_NAMES.items(), ("utf8mb4", _NEW))
        for number, rest in zip(text.split()[::2], text.split()[1::2], strict=True)
    },
    **{
        first + number: f"{charset}_{language}_ci"
        for charset, first in _BLOCKS.items()
        for number, language in enumerate(_LANGUAGES)
    },
}


def collation_name(collation: int) -> str | None:
    """The name of a collation ID; None if it is unknown."""
    if collation >= _UCA14:
        block, rest = divmod(collation - _UCA14, 256)
        language, kind = _UCA14_LANGUAGES.get(rest // 8), _UCA14_KINDS[rest % 8]
        if language is None or block >= len(_UCA14_SETS):
            return None
        return "_".join(part for part in (_UCA14_SETS[block], "uca1400", language, kind) if part)
    padded = _BY_ID.get(collation - _NOPAD)
    if padded is not None and "_" in padded:
        head, _, kind = padded.rpartition("_")
        return f"{head}_nopad_{kind}"
    return _BY_ID.get(collation)


def plain_name(collation: str) -> str:
    """A server's name of a collation in the notation of `collation_name`."""
    name = collation.lower().replace("_croatian_mysql561_", "_croatian_")
    return f"utf8mb3_{name[5:]}" if name.startswith("utf8_") else name
