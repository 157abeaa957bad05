"""Generates the spec's JSON schema, for editors: `python -m dmdelta.config.schema > schemas/pipeline.schema.json`."""

import json
import sys
from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from dmdelta.config.section import format_duration
from dmdelta.config.task import TaskSpec


class _Untitled(GenerateJsonSchema):
    """Omits pydantic's generated titles, which repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def pipeline_schema() -> str:
    """The content of `schemas/pipeline.schema.json`."""
    schema = TaskSpec.model_json_schema(by_alias=True, schema_generator=_Untitled)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(pipeline_schema())
