"""Compares JSON texts by meaning: servers and Spark write numbers, times and the order of keys differently."""

import json
import re
from datetime import datetime
from decimal import Decimal
from typing import Any


def same_text(left: str | None, right: str | None) -> bool:
    """Whether two JSON texts are equal by meaning; None is the SQL NULL, which differs from the JSON null."""
    if left is None or right is None:
        return left is right
    return left == right or same_document(parse_document(left), parse_document(right))


def same_document(left: Any, right: Any) -> bool:
    """Whether two parsed documents are equal: integers exactly, other numbers as doubles, times by instant."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_document(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_document, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        whole = left == left.to_integral_value() and right == right.to_integral_value()
        return left == right or (not whole and float(left) == float(right))
    if isinstance(left, str) and isinstance(right, str) and left != right:
        return _instant(left) is not None and _instant(left) == _instant(right)
    return type(left) is type(right) and bool(left == right)


def parse_document(text: str) -> Any:
    """Parse JSON, with every number as an exact Decimal."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(re.sub(r"\.(\d{1,6})$", lambda found: f".{found.group(1):0<6}", text))
    except ValueError:
        return None
