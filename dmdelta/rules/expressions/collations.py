"""Comparing text as MySQL's collations do.

`_bin` collations compare code points. `general_ci` and `latin1_swedish_ci` assign a weight to each character:
characters are replaced by those whose codes are the weights, so that Spark's plain comparison has MySQL's result,
including order. `utf8mb4_0900_ai_ci` treats characters as equal like Spark's UNICODE_CI_AI, except for some (quotation
marks, those newer than Unicode 9) that are replaced first; its order, and other collations, are not supported. The
replacements were read from real servers: `tests/support/record_collation_weights.py`. They cover single characters, not
the sequences that some languages sort as one.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dmdelta.model.spark_sql import literal
from dmdelta.rules.expressions.values import Refusal

_UNICODE = "UNICODE_CI_AI"
_IN_CODE_ORDER = ("utf8mb4", "utf8mb3", "ascii", "ucs2", "utf32")
"""Character sets whose byte order is Unicode's."""
_WEIGHED = {
    **dict.fromkeys(("utf8mb4_general_ci", "utf8mb3_general_ci"), "general_ci"),
    **dict.fromkeys(("utf8mb4_general_nopad_ci", "utf8mb3_general_nopad_ci"), "general_ci"),
    **dict.fromkeys(("latin1_swedish_ci", "latin1_swedish_nopad_ci"), "latin1_swedish_ci"),
}
_BEYOND_BMP = r"[\x{10000}-\x{10FFFF}]"


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(Path(__file__).parents[1].joinpath("collation_weights.json").read_text("utf-8"))
    return tables


@dataclass(frozen=True, slots=True)
class Collation:
    """How a collation compares, as SQL.

    Attributes:
        table: the name of its replacements, '' for none.
        pads: trailing spaces are ignored.
        ordered: < and > are supported as well.
    """

    name: str
    table: str
    pads: bool
    ordered: bool

    def plain(self, sql: str) -> str:
        """The text with the collation's replacements; trailing spaces are kept."""
        if not self.table:
            return sql
        replaced = _tables()[self.table]
        if self.table == "general_ci":
            sql = f"regexp_replace({sql}, {literal(_BEYOND_BMP)}, '\ufffd')"
        return f"translate({sql}, {literal(replaced['from'])}, {literal(replaced['to'])})"

    def plain_literal(self, text: str) -> str:
        """`plain` for a constant text."""
        if not self.table:
            return text
        replaced = _tables()[self.table]
        if self.table == "general_ci":
            text = "".join("\ufffd" if ord(char) > 0xFFFF else char for char in text)
        return text.translate(str.maketrans(replaced["from"], replaced["to"]))

    def comparable(self, sql: str) -> str:
        """A form of a text (SQL) that is equal for texts that the collation treats as equal."""
        plain = self.plain(sql)
        if self.table == "utf8mb4_0900_ai_ci":
            return f"({plain} COLLATE {_UNICODE})"
        return f"rtrim({plain})" if self.pads else plain

    def compared(self, left: str, right: str, operator: str) -> str:
        """Compares two texts that are `plain`."""
        if self.table == "utf8mb4_0900_ai_ci":
            return f"({left} COLLATE {_UNICODE} {operator} {right} COLLATE {_UNICODE})"
        if not self.pads:
            return f"({left} {operator} {right})"
        if operator in ("=", "<>", "<=>"):
            return f"(rtrim({left}) {operator} rtrim({right}))"
        # The shorter text is compared as if padded with spaces, which sort after control characters.
        size = f"greatest(char_length({left}), char_length({right}))"
        return f"(rpad({left}, {size}, ' ') {operator} rpad({right}, {size}, ' '))"

    def alike(self, char: str, part: str) -> str:
        """A regular expression for one character of a LIKE pattern, for text that is `plain`."""
        if self.table != "utf8mb4_0900_ai_ci":
            return _code(self.plain_literal(char))
        like: dict[str, str] = _tables()[self.table]["like"]
        if char not in like:
            raise Refusal(part, f"LIKE with {self.name} is supported for ASCII letters, digits and punctuation only")
        return f"[{''.join(map(_code, like[char]))}]"

    def searched(self, sql: str) -> str:
        """The text that `alike` is matched against: LIKE compares each character separately."""
        return sql if self.table == "utf8mb4_0900_ai_ci" else self.plain(sql)


def collation_of(name: str | None, charset: str | None, part: str) -> Collation:
    """How a collation compares.

    Raises:
        Refusal: Spark is not known to give the same results for it.
    """
    if name is None:
        raise Refusal(part, "the column's collation is unknown: not in the log, and the table no longer exists")
    if name == "binary" or name.endswith("_bin"):
        pads = name != "binary" and not name.endswith(("nopad_bin", "0900_bin"))
        return Collation(name, "", pads, charset in _IN_CODE_ORDER)
    if name in _WEIGHED:
        return Collation(name, _WEIGHED[name], "_nopad_" not in name, ordered=True)
    if name == "utf8mb4_0900_ai_ci":
        return Collation(name, name, pads=False, ordered=False)
    raise Refusal(part, f"Spark does not support the collation {name}: add COLLATE, as in `c COLLATE utf8mb4_bin`")


def _code(char: str) -> str:
    return f"\\x{{{ord(char):x}}}"
