"""Which commit of a merged table may have left a statement unfinished."""

from dataclasses import replace

import pytest

from dmdelta.lakehouse.maintenance.positions import REPAIR
from dmdelta.silver.apply.context import newest_applied
from tests.support.commit_tags import tag

A, B = tag(5, app="a"), tag(7, app="b")
REPAIRED, REPEATED = tag(9, app=f"a{REPAIR}"), replace(tag(3, app="c"), again=True)


@pytest.mark.parametrize(
    ("tags", "newest"),
    [
        ([B, A], B),
        ([REPAIRED, B, A], B),
        ([replace(B, repaired=True), A], A),
        ([REPEATED, B, A], B),
        ([REPEATED, replace(A, again=True), REPAIRED, B], B),
        ([REPAIRED, replace(B, again=True), REPEATED], replace(B, again=True)),
        ([REPAIRED], None),
        ([], None),
    ],
)
def test_repairs_and_repetitions_hide_no_statement(tags, newest):
    """The newest commit that applied something counts; one that is only repeated, if the history has no other."""
    assert newest_applied(tags) == newest
