"""Data Docs: an index that links to each suite and each validation."""

from html.parser import HTMLParser

import great_expectations as gx
import pandas as pd
import pytest

from dmdelta.errors import ConfigError
from dmdelta.quality.data_docs import write_data_docs
from dmdelta.quality.results import Scope, Validation


def evaluated(table, begin, *amounts):
    """Great Expectations' result for amounts that should not be negative."""
    context = gx.get_context(mode="ephemeral")
    batch = context.data_sources.add_pandas("p").add_dataframe_asset(table).add_batch_definition_whole_dataframe("rows")
    suite = context.suites.add(gx.ExpectationSuite(table))
    suite.add_expectation(gx.expectations.ExpectColumnValuesToBeBetween(column="amount", min_value=0))
    validation = context.validation_definitions.add(gx.ValidationDefinition(name=table, data=batch, suite=suite))
    told = validation.run(batch_parameters={"dataframe": pd.DataFrame({"amount": amounts})})
    return Validation(table, Scope.RANGE, f"1/binlog.{begin}:4 1/binlog.{begin}:99", told)


class Links(HTMLParser):
    """The links of a page within its site."""

    def __init__(self, text):
        super().__init__()
        self.found = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        target = dict(attrs).get("href") or ""
        if tag in ("a", "tr", "td") and target.endswith(".html") and "://" not in target:
            self.found.add(target)


def pages(index):
    """The pages that an index links to; each of them exists."""
    text = index.read_text("utf-8")
    found = {str(path.relative_to(index.parent)) for path in index.parent.rglob("*.html")} - {"index.html"}
    assert found == {page for page in found if page in text}
    assert all((index.parent / link).is_file() for link in Links(text).found)
    return found


def test_each_suite_and_each_validation_has_a_page(tmp_path):
    """Several tables, and two ranges of one table; other files in the folder are kept."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "own.txt").write_text("mine")
    first = [
        evaluated("shop.orders", "000001", 1, -7),
        evaluated("shop.orders", "000002", 1),
        evaluated("shop.items", "000001", 3),
    ]
    index = write_data_docs(folder, first)
    assert index == folder / "index.html"
    found = pages(index)
    assert {page for page in found if page.startswith("expectations/")} == {
        "expectations/shop/orders.html",
        "expectations/shop/items.html",
    }
    validated = {page for page in found if page.startswith("validations/")}
    assert sum(page.startswith("validations/shop/orders/range/") for page in validated) == 2
    assert len(validated) == 3
    (failed,) = [page for page in validated if "000001-4" in page and "orders" in page]
    assert "-7" in (folder / failed).read_text("utf-8")
    write_data_docs(folder, [evaluated("shop.orders", "000003", 5)])
    text = index.read_text("utf-8")
    assert "000003-4" in text
    assert "000001-4" not in text
    assert (folder / failed).is_file()
    assert (folder / "own.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    """The path is a file."""
    (tmp_path / "docs").write_text("")
    with pytest.raises(ConfigError, match="docs cannot be written"):
        write_data_docs(tmp_path / "docs", [evaluated("shop.orders", "000001", 1)])
