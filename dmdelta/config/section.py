"""Base class of the spec's sections, and the value types of their keys."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
)

from dmdelta.model.tls import password_bytes

FOLDER = "folder"
"""The key in the validation context that holds the spec's folder."""

_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DURATION = re.compile(r"^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$")
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")


def hyphenated(name: str) -> str:
    """`server_id` → `server-id`: the YAML key of a field. A name that pydantic reserves ends in `_`."""
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """A mapping in the spec: frozen, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=hyphenated,
        populate_by_name=True,  # for Python callers; the loader accepts hyphenated keys only
        hide_input_in_errors=True,  # an error must not show a password
        defer_build=True,  # each validator is built when it is first used: a command starts in half the time
    )


def parse_duration(value: Any) -> Any:
    """Convert `30s`, `1m30s`, `500ms`, or a bare number of seconds to a timedelta; leave other values to pydantic.

    Raises:
        ValueError: the text is not a duration.
    """
    if isinstance(value, bool):
        raise ValueError("a duration is written as 30s or 1m30s")  # noqa: TRY004 - pydantic expects ValueError
    if isinstance(value, (int, float)):
        return timedelta(seconds=value)
    if isinstance(value, str):
        if not _DURATION.match(value):
            raise ValueError("a duration is written as 30s, 1m30s or 500ms")
        return timedelta(seconds=sum(float(n) * _DURATION_UNITS[unit] for n, unit in _DURATION_PART.findall(value)))
    return value


def format_duration(value: timedelta) -> str:
    """A timedelta as the spec writes it: `1m30s`."""
    milliseconds = round(value.total_seconds() * 1000)
    text = ""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta(0):
        raise ValueError("a duration must not be negative")
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    AfterValidator(_not_negative),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": _DURATION.pattern}, {"type": "number", "minimum": 0}]},
    ),
]
"""A time span: `30s`, `1m30s`, `500ms`; a bare number is in seconds, as in DM."""


def is_uri(text: str) -> bool:
    """Whether `text` is a URI (`s3://…`, `abfss://…`, `dbfs:/…`)."""
    return bool(_URI.match(text))


def _can_be_sent(value: SecretStr) -> SecretStr:
    try:
        password_bytes(value.get_secret_value())
    except UnicodeEncodeError:
        # UnicodeEncodeError's own message contains the password.
        raise ValueError("contains a character that no server accepts: an unpaired surrogate (\\ud800)") from None
    return value


def _beside_spec(text: str, info: ValidationInfo) -> str:
    folder: Path | None = (info.context or {}).get(FOLDER)
    if folder is None or is_uri(text) or Path(text).is_absolute():
        return text
    return str((folder / text).resolve())


def _plain_folder(text: str) -> str:
    if is_uri(text):
        raise ValueError("must be a folder (for shared storage, a mounted volume), not a URI")
    return text


Password = Annotated[SecretStr, AfterValidator(_can_be_sent)]
"""A secret, never displayed."""

StoragePath = Annotated[str, AfterValidator(_beside_spec)]
"""A path or URI that Spark can write to; a relative path is relative to the spec's folder."""

FolderPath = Annotated[str, AfterValidator(_plain_folder), AfterValidator(_beside_spec)]
"""A folder or file on this machine; a relative path is relative to the spec's folder."""
