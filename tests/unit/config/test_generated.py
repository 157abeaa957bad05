"""The schema, the reference of keys and the shipped specs match the code."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.config.docs import spec_reference
from dmdelta.config.schema import pipeline_schema, suite_schema
from dmdelta.engine.telemetry.task_status import status_schema
from dmdelta.quality.suite import load_suites
from tests.support.shop import TABLES

ROOT = Path(__file__).resolve().parents[3]


def test_the_json_schema_is_up_to_date():
    """`schemas/pipeline.schema.json` is what `python -m dmdelta.config.schema` prints."""
    assert (ROOT / "schemas/pipeline.schema.json").read_text(encoding="utf-8") == pipeline_schema()


def test_the_json_schema_of_contracts_is_up_to_date():
    """`schemas/suite.schema.json` is what `python -m dmdelta.config.schema suite` prints."""
    assert (ROOT / "schemas/suite.schema.json").read_text(encoding="utf-8") == suite_schema()


def test_the_json_schema_of_the_status_is_up_to_date():
    """`schemas/status.schema.json` is what `python -m dmdelta.engine.telemetry.task_status` prints."""
    assert (ROOT / "schemas/status.schema.json").read_text(encoding="utf-8") == status_schema()


def test_the_page_of_keys_is_up_to_date():
    """`docs/spec.md` is what `python -m dmdelta.config.docs` prints."""
    assert (ROOT / "docs/spec.md").read_text(encoding="utf-8") == spec_reference()


@pytest.mark.parametrize(
    "text", [pipeline_schema(), suite_schema(), status_schema()], ids=["spec", "contract", "status"]
)
def test_every_key_says_what_it_means(text):
    """Each property of the schemas has a description."""
    schema = json.loads(text)
    sections = {schema["title"]: schema, **schema["$defs"]}
    silent = [
        f"{n}.{k}" for n, s in sections.items() for k, v in s.get("properties", {}).items() if not v.get("description")
    ]
    assert not silent


@pytest.mark.parametrize("path", sorted((ROOT / "pipelines").glob("*.yml")), ids=lambda path: path.name)
def test_every_shipped_spec_is_valid(path):
    """The specs in pipelines/ load, given the variables that they refer to."""
    assert load_spec(path, {"MYSQL_PASSWORD": "x"}, lambda _scope, _key: "x").sources


CONTRACTS = sorted((ROOT / "schemas").glob("*/*.yml"))


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_every_shipped_contract_fits_its_json_schema(path):
    """Editors find the schema by the first line."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../suite.schema.json\n")
    assert (path.parent / "../suite.schema.json").is_file()
    jsonschema.validate(yaml.safe_load(text), json.loads(suite_schema()))


def test_the_json_schema_refuses_what_the_loader_refuses():
    """An unknown key, another on-failure, a foreign key without the other table's columns."""
    for wrong in (
        {"expectation": []},
        {"expectations": [{"type": "expect_column_values_to_be_null", "on-failure": "drop"}]},
        {"foreign-keys": [{"columns": ["a"], "references": "shop.orders"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, json.loads(suite_schema()))


def test_the_contracts_are_read_from_the_folder_of_the_json_schemas():
    """One for each table of the shop in each of its databases; together they use all that a running task does."""
    suites = load_suites(ROOT / "schemas").by_table
    assert set(suites) == {(database, table) for database in ("shop", "boutique") for table in TABLES}
    for database in ("shop", "boutique"):
        own = [suite for (schema, _), suite in suites.items() if schema == database]
        assert {each.config.on_failure for suite in own for each in suite.expectations} == {
            "warn",
            "quarantine",
            "stop",
        }
        parents = {
            key.parent for (schema, table), suite in suites.items() for key in suite.foreign_keys((schema, table))
        }
        assert parents <= set(suites)


@pytest.mark.parametrize("path", sorted((ROOT / "pipelines").glob("*.yml")), ids=lambda path: path.name)
def test_every_shipped_spec_names_the_contracts(path):
    """Relative to the spec, in the repository as in a bundle's workspace, which has both folders."""
    spec = load_spec(path, {"MYSQL_PASSWORD": "x"}, lambda _scope, _key: "x")
    assert spec.quality is not None
    assert Path(spec.quality.schemas).resolve() == ROOT / "schemas"
    bundle = yaml.safe_load((ROOT / "databricks.yml").read_text())
    assert {"pipelines", "schemas"} <= set(bundle["sync"]["paths"])


def test_the_quickstart_needs_no_environment_and_finds_its_binlogs():
    """The quickstart reads whole files that are in the repository."""
    spec = load_spec(ROOT / "pipelines/quickstart.yml", {})
    assert all(list(Path(source.binlog_dir).glob("binlog.*")) for source in spec.sources)
