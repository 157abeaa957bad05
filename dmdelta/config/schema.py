"""Generates the JSON schemas of specs and suites, for editors.

`python -m dmdelta.config.schema > schemas/pipeline.schema.json`, and with the argument `suite` that of suites.
"""

import sys
from datetime import timedelta
from typing import Any

from dmdelta.config.section import Section, format_duration
from dmdelta.config.suite import SuiteConfig
from dmdelta.config.task import TaskSpec
from dmdelta.model.model_schema import Untitled, schema_text


class _SpecSchema(Untitled):
    """Writes durations as a spec has them."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def pipeline_schema() -> str:
    """The content of `schemas/pipeline.schema.json`."""
    return schema_text(TaskSpec, Section, generator=_SpecSchema)


def suite_schema() -> str:
    """The content of `schemas/suite.schema.json`."""
    return schema_text(SuiteConfig, Section, generator=_SpecSchema)


if __name__ == "__main__":
    sys.stdout.write(suite_schema() if sys.argv[1:] == ["suite"] else pipeline_schema())
