"""The quarantine of a table follows its log: rows and statements, whatever the suite is by then."""

from dataclasses import replace

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.errors import QualityError, UnsupportedSchemaChange
from dmdelta.model.change import Op
from dmdelta.model.schema import Column
from dmdelta.rules import Action, EventFilter, SourceRules
from dmdelta.rules.filters import Rule
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.quarantine import Quarantine
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck
from dmdelta.silver.history.reload import ReloadRequest, reload_table
from tests.support.changelog import ITEMS, SOURCE, Changelog

BAD = {"id": 7, "v": "bad"}


def suite(on_failure=OnFailure.QUARANTINE):
    """The checks of a task in which `bad` fails."""

    def checks(_target, _schema):
        return (RowCheck("v is not bad", F.coalesce(F.col("v") == "bad", F.lit(False)), on_failure),)

    return checks


class Guarded:
    """A table with a passing row in silver, and a failing one in quarantine."""

    def __init__(self, spark, lakehouse):
        self.log = Changelog(spark, lakehouse)
        begin = self.log.position
        self.log.tell(ITEMS)
        self.log.insert({"id": 1, "v": "good"})
        self.log.insert(BAD)
        self.log.apply(begin, checks=suite())
        self.begin = self.log.position
        target = self.log.request(begin, begin).target
        self.spark, self.quarantine = spark, Quarantine.of(target)
        assert (self.silver, self.quarantined) == ([1], [7])

    def apply(self, **more):
        """Apply what has been logged since the last call."""
        begin, self.begin = self.begin, self.log.position
        return self.log.apply(begin, **more)

    @property
    def silver(self):
        return [row[0] for row in self.log.silver()]

    @property
    def quarantined(self):
        return sorted(row[0] for row in self.quarantine.rows(self.spark).selectExpr("image:id::INT").collect())


@pytest.fixture
def guarded(spark, lakehouse):
    return Guarded(spark, lakehouse)


def test_a_refused_statement_changes_neither_silver_nor_the_quarantine(guarded):
    """Without the filter that refuses it, it empties both."""
    rule = Rule("r", "d", "items", ("truncate table",), (), Action.ERROR)
    guarded.log.ddl("TRUNCATE TABLE items")
    begin = guarded.begin
    with pytest.raises(UnsupportedSchemaChange, match="action Error"):
        guarded.apply(checks=suite(), rules=SourceRules(SOURCE, events=EventFilter((rule,))))
    assert (guarded.silver, guarded.quarantined) == ([1], [7])
    guarded.begin = begin
    guarded.apply(checks=suite())
    assert (guarded.silver, guarded.quarantined) == ([], [])


def no_suite(_target, _schema):
    """The checks of a task without suites."""
    return ()


@pytest.mark.parametrize("checks", [suite(OnFailure.WARN), no_suite], ids=["warn", "no suite"])
def test_a_row_leaves_the_quarantine_with_its_next_change_after_the_suite_was_relaxed(guarded, checks):
    """A row that the source deletes is nowhere, one that it changes is only in silver, and the others stay."""
    for number in (8, 9):
        guarded.log.insert({"id": number, "v": "bad"})
    guarded.apply(checks=suite())
    guarded.log.delete(BAD)
    guarded.log.update({"id": 8, "v": "bad"}, {"id": 8, "v": "bad, too"})
    guarded.apply(checks=checks)
    assert (guarded.silver, guarded.quarantined) == ([1, 8], [9])


def test_an_ad_hoc_snapshot_replaces_the_quarantine_after_the_suite_was_removed(guarded):
    """The rows that it has read are all in silver."""
    log = guarded.log
    at = log.position
    log.change(Op.READ, None, BAD)
    log.land()
    context = log.request(at, at, checks=no_suite).context
    reload_table(guarded.spark, ReloadRequest(context, ITEMS, at.epoch, at, None))
    assert (guarded.silver, guarded.quarantined) == ([7], [])


def test_an_empty_quarantine_is_looked_up_once(guarded, monkeypatch):
    """A run that quarantines no rows looks for rows of earlier runs before the first change of a table only."""
    looks = []
    has_rows = Quarantine.has_rows
    monkeypatch.setattr(Quarantine, "has_rows", lambda *arguments: looks.append(1) or has_rows(*arguments))
    log, context = guarded.log, guarded.log.request(guarded.begin, guarded.begin, checks=no_suite).context
    for number in (7, 2, 3):
        log.insert({"id": number, "v": "new"})
        begin, end = guarded.begin, log.land()
        apply_table(guarded.spark, replace(log.request(begin, end), context=context))
        guarded.begin = end
    assert (guarded.silver, guarded.quarantined) == ([1, 2, 3, 7], [])
    assert len(looks) == 2, "with the row, and without"


def test_a_change_that_cannot_be_applied_to_the_quarantine_stops_the_table(guarded):
    """A partial image of a quarantined row does not have the values that silver lacks."""
    log = guarded.log
    log.update(BAD, {"id": 7}, image=["id"])
    with pytest.raises(QualityError, match="partial row images"):
        guarded.apply(checks=no_suite)
    assert guarded.quarantined == [7]


def test_a_statement_that_changes_the_key_waits_for_the_quarantine(guarded):
    """It is refused as long as a quarantined row has the former key; nothing is changed. Other changes of the key are followed."""
    log, renamed = guarded.log, replace(ITEMS, columns=(Column("pk", "int"), *ITEMS.columns[1:]), primary_key=("pk",))
    log.ddl("ALTER TABLE items MODIFY id INT")
    guarded.apply(checks=suite(), known=None, applied=None, after=None)
    log.ddl("ALTER TABLE items CHANGE id pk INT")
    log.tell(renamed)
    log.update({"pk": 7, "v": "bad"}, {"pk": 7, "v": "good"})
    begin = guarded.begin
    with pytest.raises(UnsupportedSchemaChange, match="release or discard them first"):
        guarded.apply(checks=suite(), known=None, applied=None, after=None)
    assert (guarded.silver, guarded.quarantined) == ([1], [7])
    guarded.quarantine.forget(guarded.spark)
    guarded.begin = begin
    guarded.apply(checks=suite(), known=None, applied=None, after=None)
    assert (guarded.silver, guarded.quarantined) == ([1, 7], [])
    log.insert({"pk": 8, "v": "bad"})
    log.ddl("ALTER TABLE items DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
    with pytest.raises(UnsupportedSchemaChange, match="release or discard them first"):
        guarded.apply(checks=suite(), known=None, applied=None, after=None)
