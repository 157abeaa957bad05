"""The quarantine of a table follows its log: rows and statements, whatever the suite is by then."""

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.errors import UnsupportedSchemaChange
from dmdelta.rules import Action, EventFilter, SourceRules
from dmdelta.rules.filters import Rule
from dmdelta.silver.apply.quarantine import Quarantine
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck
from tests.support.changelog import ITEMS, SOURCE, Changelog

BAD = {"id": 7, "v": "bad"}


def suite(on_failure=OnFailure.QUARANTINE):
    """The checks of a task in which `bad` fails."""
    check = RowCheck("v is not bad", F.coalesce(F.col("v") == "bad", F.lit(False)), on_failure)
    return lambda _target, _schema: (check,)


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


@pytest.mark.parametrize("sql", ["TRUNCATE TABLE items", "DROP TABLE items"])
def test_a_refused_statement_changes_neither_silver_nor_the_quarantine(guarded, sql):
    """Without the filter that refuses it, it empties both."""
    rule = Rule("r", "d", "items", ("truncate table", "drop table"), (), Action.ERROR)
    guarded.log.ddl(sql)
    begin = guarded.begin
    with pytest.raises(UnsupportedSchemaChange, match="action Error"):
        guarded.apply(checks=suite(), rules=SourceRules(SOURCE, events=EventFilter((rule,))))
    assert (guarded.silver, guarded.quarantined) == ([1], [7])
    guarded.begin = begin
    guarded.apply(checks=suite())
    assert (guarded.silver, guarded.quarantined) == ([], [])
