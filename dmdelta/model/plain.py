"""Records as plain JSON values: what a terminal, a pipe and the control socket have in common."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from dmdelta.model.position import Position


def plain(value: Any) -> Any:
    """A record as plain JSON values: fields become keys; positions and times become text, durations become seconds."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Position):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    return value
