"""Generates the JSON schemas of specs and suites, for editors.

`python -m dmdelta.config.schema > schemas/pipeline.schema.json`, and with the argument `suite` that of suites.
"""

import json
import sys
from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from dmdelta.config.section import Section, format_duration
from dmdelta.config.suite import SuiteConfig
from dmdelta.config.task import TaskSpec
from dmdelta.model.field_docs import describe_fields


class _Untitled(GenerateJsonSchema):
    """Omits pydantic's generated titles, which repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def pipeline_schema() -> str:
    """The content of `schemas/pipeline.schema.json`."""
    return _schema(TaskSpec)


def suite_schema() -> str:
    """The content of `schemas/suite.schema.json`."""
    return _schema(SuiteConfig)


def _schema(model: type[Section]) -> str:
    describe_fields(Section)
    schema = model.model_json_schema(by_alias=True, schema_generator=_Untitled)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(suite_schema() if sys.argv[1:] == ["suite"] else pipeline_schema())
