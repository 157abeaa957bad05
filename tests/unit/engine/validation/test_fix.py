"""The commits of `dmdelta validate --fix`."""

from dataclasses import replace

import pytest

from dmdelta.engine.validation.fix import plan_tag
from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import LAST_STEP, leaves_whole
from tests.support.commit_tags import tag


def at(offset):
    return Position(1, "b.000001", offset)


@pytest.mark.parametrize(("known", "until"), [(None, at(900)), (at(800), at(900)), (at(950), at(950))])
def test_a_repair_keeps_the_position_and_leaves_the_table_whole(known, until):
    """Changes that the rows may contain follow in safe mode; a second commit follows the first one."""
    newest = replace(tag((5 << 16) | LAST_STEP), end=at(500), safe_until=known)
    first = plan_tag(newest, "fixer", at(900))
    assert first == replace(
        newest, version=6 << 16, run="fixer", begin=at(500), end=at(500), safe_until=until, repaired=True
    )
    second = plan_tag(first, "fixer", at(900))
    assert second == replace(first, version=first.version + 1)
    assert leaves_whole(first)
    assert leaves_whole(second)
    assert CommitTag.from_json(first.to_json()) == first


def test_a_part_of_a_range_does_not_leave_the_table_whole():
    """Unlike the commit that completes the range."""
    assert not leaves_whole(tag(5 << 16))
    assert leaves_whole(tag((5 << 16) | LAST_STEP))
