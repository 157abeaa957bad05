"""`examples/quickstart.py`: what a newcomer sees, twice, and the contracts that it shows, against the shipped binlogs."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.engine.quality.command import QualityRequest, evaluate_tables
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.logging import configure
from dmdelta.quality.suite import load_suites
from tests.support.shop import TABLES

ROOT = Path(__file__).resolve().parents[2]
NOTHING_NEW = "nothing is new, so nothing was written"


@pytest.fixture(autouse=True)
def logging_as_before():
    """The demo's process logs errors alone; what runs in this one later logs as ever."""
    yield
    configure()


@pytest.fixture(scope="module")
def demo():
    """The program as a module."""
    found = importlib.util.spec_from_file_location("quickstart", ROOT / "examples" / "quickstart.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """The shipped spec, with a lakehouse of its own."""
    folder = tmp_path_factory.mktemp("quickstart")
    values = yaml.safe_load((ROOT / "pipelines" / "quickstart.yml").read_text())
    for source in values["sources"]:
        source["binlog-dir"] = str(ROOT / "pipelines" / source["binlog-dir"])
    values["quality"]["schemas"] = str(ROOT / "schemas")
    values["lakehouse"]["root"] = str(folder / "lake")
    path = folder / "quickstart.yml"
    path.write_text(yaml.safe_dump(values))
    return path


def printed(demo, spec, capfd):
    """What a run prints, by the headings of its sections."""
    capfd.readouterr()
    demo.main(spec)
    names = "Run|Bronze|Silver|Quarantine|Evaluation|Verification|Pages"
    out = capfd.readouterr().out
    sections = re.findall(rf"\n({names})\b(.*?)(?=\n(?:{names})\b|\Z)", out, re.DOTALL)
    found = {}
    for name, text in sections:
        found[name] = found.get(name, "") + text
    return found


def lines_with(text, *words):
    """The lines of a table that have all of these words."""
    return [line for line in text.splitlines() if all(word in line for word in words)]


def test_the_demo_shows_quarantine_and_evaluation_twice(demo, spec, spark, capfd):
    """Planned violations, with reasons and counts; the pages are written; a second run finds nothing new and the same."""
    first = printed(demo, spec, capfd)
    assert list(first) == ["Run", "Bronze", "Silver", "Quarantine", "Evaluation", "Verification", "Pages"]
    changes = int(re.search(r"([\d,]+) row changes of 12 tables", first["Run"])[1].replace(",", ""))
    lake = Lakehouse(root=str(spec.parent / "lake"))
    assert changes == spark.table(lake.bronze).where("op IN ('insert', 'update', 'delete')").count() > 1000
    assert "No difference: bronze is what the logs say" in first["Verification"]
    for table in ("shop.orders", "boutique.orders"):
        assert lines_with(first["Verification"], table)
    for database in ("shop", "boutique"):
        (total,) = lines_with(first["Quarantine"], f"{database}.orders")
        assert all(word in total for word in ('{"id":9102}', "-25.5", "column=total, min_value=0"))
        (email,) = lines_with(first["Quarantine"], f"{database}.customers")
        assert all(word in email for word in ('{"id":9001}', "grace.hopper at example.org", "column=email"))
    (orphan,) = lines_with(
        first["Evaluation"], "shop.orders", "foreign key (customer_id) references shop.customers (id)"
    )
    rows = spark.table(lake.silver("shop", "orders"))
    written = rows.where(f"_dm_version.seq >= {2 << 40}").count()  # a file's number x 2^40: the second file
    assert re.search(rf" no +{written} +1 +id=9103\b", orphan), orphan
    (mean,) = lines_with(first["Evaluation"], "shop.orders", "expect_column_mean_to_be_between")
    assert " yes " in mean
    pages = [Path(found) for found in re.findall(r": (/\S+\.html)", first["Pages"])]
    assert [page.name for page in pages] == ["report.html", "index.html"]
    assert all("<html" in page.read_text("utf-8") for page in pages)
    validated = sorted((pages[1].parent / "validations" / "shop" / "orders").rglob("*.html"))
    assert len(validated) == 1
    assert str(validated[0].relative_to(pages[1].parent)) in pages[1].read_text("utf-8")

    before = spark.sql(f"DESCRIBE HISTORY {lake.bronze}").count()
    second = printed(demo, spec, capfd)
    assert NOTHING_NEW in second["Run"]
    assert NOTHING_NEW not in first["Run"]
    assert spark.sql(f"DESCRIBE HISTORY {lake.bronze}").count() == before
    assert {name: text for name, text in second.items() if name != "Run"} == {
        name: text for name, text in first.items() if name != "Run"
    }


@pytest.mark.long
def test_every_shipped_contract_fits_its_table(demo, spec, spark):
    """Columns, types, keys and expectations, but for what is planned; a contract has every column of its table."""
    lake, suites = Lakehouse(root=str(spec.parent / "lake")), load_suites(ROOT / "schemas")
    if not (spec.parent / "lake").exists():
        demo.run(load_spec(spec))
    judged = [
        one
        for source in ("shop-mysql", "shop-mariadb")
        for one in evaluate_tables(load_spec(spec), QualityRequest(source=source), lambda _: None)
    ]
    assert {one.subject.table for one in judged} == {(s, table) for s in ("shop", "boutique") for table in TABLES}
    for one in judged:
        contract = suites.of(one.subject.table).contract
        columns = spark.table(lake.silver(*one.subject.table)).columns
        assert list(contract.columns) == [name for name in columns if not name.startswith("_dm_")]
        results = {result.expectation: result for result in one.results}
        assert results["columns and key"].success, results["columns and key"].note
        assert {str(each) for each in suites.of(one.subject.table).expectations} <= set(results)
    failed = {
        (one.subject.table, result.expectation): result.samples
        for one in judged
        for result in one.results
        if not result.success
    }
    assert failed == {
        ((database, "orders"), f"foreign key (customer_id) references {database}.customers (id)"): ({"id": "9103"},)
        for database in ("shop", "boutique")
    }
