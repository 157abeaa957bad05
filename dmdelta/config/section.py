"""What every section of the spec has in common, and the kinds of values its keys take."""

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
"""The key of the validation context that holds the spec's folder."""

_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DURATION = re.compile(r"^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$")
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")


def hyphenated(name: str) -> str:
    """`server_id` → `server-id`: the key of a field in YAML. A name that pydantic has taken ends in `_`."""
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """A mapping of the spec: frozen, no other keys than its fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=hyphenated,
        populate_by_name=True,  # for Python callers; the loader takes hyphenated keys only
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # an error must not show a password
    )


def parse_duration(value: Any) -> Any:
    """`30s`, `1m30s`, `500ms`, or a bare number of seconds, to a timedelta; anything else is for pydantic to refuse.

    Raises:
        ValueError: text that is no duration.
    """
    if isinstance(value, bool):
        raise ValueError("a duration is written like 30s or 1m30s")  # noqa: TRY004 - pydantic wants ValueError
    if isinstance(value, (int, float)):
        return timedelta(seconds=value)
    if isinstance(value, str):
        if not _DURATION.match(value):
            raise ValueError("a duration is written like 30s, 1m30s or 500ms")
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
        raise ValueError("a duration is not negative")
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
"""A span of time: `30s`, `1m30s`, `500ms`; a bare number counts seconds, as DM has it."""


def is_uri(text: str) -> bool:
    """Whether `text` names its own storage (`s3://…`, `abfss://…`, `dbfs:/…`)."""
    return bool(_URI.match(text))


def _can_be_sent(value: SecretStr) -> SecretStr:
    try:
        password_bytes(value.get_secret_value())
    except UnicodeEncodeError:
        # Its own words hold the password.
        raise ValueError("holds a character that no server could have been given: half of a pair (\\ud800)") from None
    return value


def _beside_spec(text: str, info: ValidationInfo) -> str:
    folder: Path | None = (info.context or {}).get(FOLDER)
    if folder is None or is_uri(text) or Path(text).is_absolute():
        return text
    return str((folder / text).resolve())


def _plain_folder(text: str) -> str:
    if is_uri(text):
        raise ValueError("must be a folder, of a mounted volume if it is to be shared; not a URI")
    return text


Password = Annotated[SecretStr, AfterValidator(_can_be_sent)]
"""Never shown."""

StoragePath = Annotated[str, AfterValidator(_beside_spec)]
"""A path or URI that Spark can write to; a relative path starts at the spec's folder."""

FolderPath = Annotated[str, AfterValidator(_plain_folder), AfterValidator(_beside_spec)]
"""A folder or file of this machine; a relative path starts at the spec's folder."""
