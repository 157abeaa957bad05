"""The schema, the reference of keys and the shipped specs match the code."""

import json
from pathlib import Path

import pytest

from dmdelta.config import load_spec
from dmdelta.config.reference import spec_reference
from dmdelta.config.schema import pipeline_schema

ROOT = Path(__file__).resolve().parents[3]


def test_the_json_schema_is_up_to_date():
    """`schemas/pipeline.schema.json` is what `python -m dmdelta.config.schema` prints."""
    assert (ROOT / "schemas/pipeline.schema.json").read_text(encoding="utf-8") == pipeline_schema()


def test_the_spec_reference_is_up_to_date():
    """`docs/spec.md` is what `python -m dmdelta.config.reference` prints."""
    assert (ROOT / "docs/spec.md").read_text(encoding="utf-8") == spec_reference()


def test_every_key_has_a_description():
    """Each property of the schema has a description."""
    schema = json.loads(pipeline_schema())
    sections = {"TaskSpec": schema, **schema["$defs"]}
    silent = [f"{n}.{k}" for n, s in sections.items() for k, v in s["properties"].items() if not v.get("description")]
    assert not silent


@pytest.mark.parametrize("path", sorted((ROOT / "pipelines").glob("*.yml")), ids=lambda path: path.name)
def test_every_shipped_spec_is_valid(path):
    """The specs in pipelines/ load, given the variables that they refer to."""
    assert load_spec(path, {"MYSQL_PASSWORD": "x"}, lambda _scope, _key: "x").sources


def test_the_quickstart_needs_no_environment_and_finds_its_binlogs():
    """The quickstart reads whole files that are in the repository."""
    spec = load_spec(ROOT / "pipelines/quickstart.yml", {})
    assert all(list(Path(source.binlog_dir).glob("binlog.*")) for source in spec.sources)
