"""Which rows an XA transaction's commit brings into effect, when epochs read parts of the same log."""

from dataclasses import dataclass

import pytest

from dmdelta.changelog.ranges import XaGroup
from dmdelta.changelog.xa import XaEpoch, plan_group


@dataclass(frozen=True)
class Case:
    """The commit `event` at `at`; what its group is: (epoch, after, until)."""

    epochs: list
    at: tuple
    group: tuple
    event: str = "c"


CASES = {
    "prepared and committed in one epoch": Case([XaEpoch(1, 10, {"c": 20})], (1, 20), (1, None, 20)),
    "the xid was used before": Case([XaEpoch(1, 10, {"b": 15, "c": 20})], (1, 20), (1, 15, 20)),
    "the xid is used again": Case([XaEpoch(1, 10, {"c": 20, "d": 40})], (1, 20), (1, None, 20)),
    "one phase: rows and commit have one position": Case([XaEpoch(1, 20, {"c": 20})], (1, 20), (1, None, 20)),
    "prepared twice, by two epochs": Case([XaEpoch(1, 10, {}), XaEpoch(2, 10, {"c": 20})], (2, 20), (2, None, 20)),
    "the second epoch begins before the commit, which the first has not": Case(
        [XaEpoch(1, 10, {}), XaEpoch(2, None, {"c": 20})], (2, 20), (1, None, None)
    ),
    "the second epoch begins before the commit, which the first has": Case(
        [XaEpoch(1, 10, {"c": 20}), XaEpoch(2, None, {"c": 20})], (2, 20), (1, None, 20)
    ),
    "the first epoch has gone on with the xid": Case(
        [XaEpoch(1, 10, {"b": 15, "c": 20, "d": 40}), XaEpoch(2, 30, {"c": 20, "d": 40})], (2, 20), (1, 15, 20)
    ),
    "the next commit of the xid, in the second epoch": Case(
        [XaEpoch(1, 10, {"c": 20, "d": 40}), XaEpoch(2, 30, {"c": 20, "d": 40})], (2, 40), (2, 20, 40), event="d"
    ),
    "the second epoch has only the copy, the third as well": Case(
        [XaEpoch(1, 10, {}), XaEpoch(2, 30, {"c": 20}), XaEpoch(3, None, {"c": 20})], (3, 20), (1, None, None)
    ),
    "another server's log follows": Case([XaEpoch(1, 10, {"b": 15}), XaEpoch(2, 7, {"c": 5})], (2, 5), (1, 15, None)),
    "prepared again by a later epoch": Case(
        [XaEpoch(1, 10, {"c": 20}), XaEpoch(2, 10, {"c": 20})], (1, 20), (1, None, 20)
    ),
    "an earlier transaction ended there: the rows of this one are filtered": Case(
        [XaEpoch(1, 10, {}), XaEpoch(2, None, {"b": 12, "c": 20})], (2, 20), (2, 12, 20)
    ),
    "prepared before bronze begins": Case([XaEpoch(1, 30, {"c": 20})], (1, 20), (1, None, 20)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_group_of_a_commit(case):
    """The rows are of one epoch: the newest that has them, up to the commit or its copy."""
    expected = XaGroup("x", case.at, *case.group)
    assert plan_group("x", case.at, case.event, case.epochs) == expected
    assert plan_group("x", case.at, case.event, case.epochs[::-1]) == expected
