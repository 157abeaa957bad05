"""The page as text: names are escaped, nothing is loaded."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from dmdelta.report.bronze_stats import STATEMENT_WIDTH, plan_shown
from dmdelta.report.page import render_page
from tests.support.reports import NASTY, busy_report

VOID = {"meta", "br"}


class Elements(HTMLParser):
    """The elements of a page, which must be nested correctly."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_names_are_escaped():
    """A table's name creates no element and no attribute, in cells, titles and charts."""
    page = Elements(render_page(busy_report()))
    assert NASTY in page.text
    assert {tag for tag, _ in page.seen}.isdisjoint({"script", "iframe", "img", "link", "object", "form"})
    assert not [name for _, attributes in page.seen for name in attributes if name.startswith("on")]


def test_the_page_loads_nothing():
    """It contains no URL, and its policy forbids the browser to load anything."""
    page = render_page(busy_report())
    assert "default-src 'none'" in page
    assert re.findall(r"https?:|//\w|@import|url\(", page) == []


def test_each_chart_has_a_title_and_a_table():
    """So that it is accessible without seeing the chart."""
    page = render_page(busy_report())
    figures = re.findall(r'<figure id="(\w+)">(.*?)</figure>', page, re.DOTALL)
    assert [name for name, _ in figures] == ["lag", "rows", "times", "checks"]
    for name, figure in figures:
        assert f'aria-labelledby="{name}-title {name}-summary"' in figure
        assert figure.count("<tr>") > 40


def test_a_task_that_never_ran_has_a_page():
    """It states this, and has no charts."""
    report = replace(busy_report(), window=None, paces=(), rows=(), tables=(), schema_changes=(), safe_ranges=())
    page = render_page(report)
    assert "Nothing has landed yet" in page
    assert "<figure" not in page


def test_statements_are_shown_without_literals():
    """On one line of bounded length; names in backticks stay."""
    statement = "ALTER TABLE `o'x`\n  ADD c VARCHAR(9) DEFAULT 'it''s' COMMENT \"s3cret\""
    assert plan_shown(statement) == "ALTER TABLE `o'x` ADD c VARCHAR(9) DEFAULT '…' COMMENT '…'"
    assert len(plan_shown(f"ALTER TABLE t {'x' * 5000}")) == STATEMENT_WIDTH
    assert plan_shown("CREATE TABLE t (a INT) -- secret") == "CREATE TABLE t (a INT)"
    assert plan_shown("CREATE TABLE t (a INT) COMMENT 'secret") == "CREATE TABLE t (a INT) COMMENT '…"
