"""Positions that only old commits have are repeated in one commit, which is then the newest one of each application."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest

from dmdelta.errors import CommitConflict
from dmdelta.lakehouse.access.commit_log import (
    Commit,
    epoch_marks,
    newest_commits,
    newest_own_commit,
    overlap_ends,
    own_commits,
    plan_kept,
    timed_commits,
)
from dmdelta.lakehouse.access.commit_tag import CommitTag, KeptTags, newest_tags
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from tests.support.commit_tags import tag

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
EPOCH_2, EPOCH_3 = Position(2, "binlog.000003", 4), Position(3, "binlog.000001", 400)
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"string","nullable":true,"metadata":{}}]}'


def history(*texts):
    """Commits, the newest first and written now, each of the others an hour before the one after it."""
    return [
        Commit(len(texts) - number, text.to_json() if text is not None else None, NOW - number * HOUR)
        for number, text in enumerate(texts)
    ]


def mark(version, app="app"):
    return replace(tag(version, app=app), begin=tag(version).end)


def again(one):
    return replace(one, again=True)


def kept(commits, hours, *, needed=lambda _: True, marks=True):
    return plan_kept(commits, NOW - hours * HOUR, needed, marks=marks)


def test_the_newest_tag_of_each_application_is_repeated_once_it_is_old():
    """The newest commit first; not for applications that still commit, and only those that are looked up."""
    commits = history(tag(9), tag(8), tag(3, app="b"), tag(2, app="b"), tag(5, app="c"), None)
    assert kept(commits, 1.5) == KeptTags((again(tag(3, app="b")), again(tag(5, app="c"))))
    assert kept(commits, 3) == KeptTags((again(tag(5, app="c")),))
    assert kept(commits, 1.5, needed=lambda one: one.app == "c") == KeptTags((again(tag(5, app="c")),))
    assert kept(commits, 9) is None
    assert kept([], 1) is None


def test_what_was_repeated_is_repeated_again():
    older = KeptTags((again(tag(3, app="b")),))
    assert kept(history(tag(9), tag(8), older), 1) == older
    assert kept(history(tag(9), older, tag(8)), 1) is None
    assert kept(history(tag(9), tag(4, app="b"), older), 0.5) == KeptTags((again(tag(4, app="b")),))


def test_the_starts_of_epochs_are_repeated_with_every_position():
    """All of them, the oldest first, and without new positions once only an old commit has one."""
    first, second = mark(1), mark(6)
    commits = history(tag(7), second, tag(5), first)
    assert kept(commits, 4) is None
    assert kept(commits, 2) == KeptTags((), (first, second))
    assert kept(commits, 2, marks=False) is None
    later = history(tag(9), tag(8), KeptTags((), (first, second)), tag(7))
    assert kept(later, 3) is None
    assert kept(later, 1) == KeptTags((), (first, second))
    assert kept(history(mark(6), tag(1, app="b")), 0.5) == KeptTags((again(tag(1, app="b")),), (mark(6),))


def test_the_overlap_of_an_epoch_is_known_also_after_its_commits_have_expired():
    """A server takes over before the log has passed a load: one tag tells it, and none of an epoch that was marked."""
    begun = replace(tag(1), end=EPOCH_2, begin=EPOCH_2, safe_until=replace(EPOCH_2, offset=900))
    passing = replace(tag(2), begin=EPOCH_2, end=replace(EPOCH_2, offset=500), safe_until=begun.safe_until)
    first, second, third = (
        replace(tag(3 + number), end=replace(EPOCH_3, offset=end), safe_until=until)
        for number, (end, until) in enumerate([(200, EPOCH_3), (500, EPOCH_3), (700, None)])
    )
    former = replace(third, version=6, safe_until=begun.safe_until)
    commits = history(tag(7, app="b"), former, third, second, first, passing, begun)
    known = {2: begun.safe_until, 3: EPOCH_3}
    assert overlap_ends(lambda _: commits, "app") == known
    assert overlap_ends(lambda _: commits, "b") == {}
    repeated = kept(commits, 0.5)
    assert repeated == KeptTags((again(former),), (begun, second))
    later = history(repeated)
    assert overlap_ends(lambda _: later, "app") == known
    assert epoch_marks(lambda _: later, "app") == [begun]
    assert kept(history(third, repeated), 0.5) == KeptTags((), (begun, second))


def test_a_text_without_tags():
    """Unknown texts have no tags, also one of a later version; a tag of an earlier version is read."""
    both = KeptTags((again(tag(3)), again(tag(4, app="b"))), (mark(1),))
    assert KeptTags.from_json(both.to_json()) == both
    assert newest_tags(both.to_json()) == both.newest
    assert newest_tags(tag(3).to_json()) == (tag(3),)
    for text in (None, "", "nightly job", "[1]", '{"dmdelta": 3}'):
        assert newest_tags(text) == ()
        assert KeptTags.from_json(text) is None
    assert CommitTag.from_json(both.to_json()) is None


def test_look_ups_find_what_was_repeated():
    """Also what was committed after it, or before it by another application."""
    commits = history(tag(9), KeptTags((again(tag(3, app="b")), again(tag(5, app="c"))), (mark(1),)), tag(8))

    def read(limit):
        return commits[:limit]

    assert newest_own_commit(read, "app").tag == tag(9)
    assert newest_own_commit(read, "b").tag == again(tag(3, app="b"))
    assert newest_commits(read, "c")[1].tag == again(tag(5, app="c"))
    assert newest_commits(read, "d") == (3, None)
    assert [(one.version, one.tag.app) for one in own_commits(read, None)] == [
        (3, "app"),
        (2, "b"),
        (2, "c"),
        (1, "app"),
    ]
    assert epoch_marks(read, "app") == [mark(1)]
    assert epoch_marks(read, "b") == []
    assert [one.tag for one in timed_commits(read, 9 * HOUR, 10)[0]] == [tag(9), tag(8)]


def test_an_expired_history_is_not_complete():
    """It may reach back less than the requested time span."""
    commits = [replace(one, version=one.version + 10) for one in history(tag(9), tag(8), tag(7))]
    assert timed_commits(lambda limit: commits[:limit], 1.5 * HOUR, 10)[1]
    assert not timed_commits(lambda limit: commits[:limit], 3 * HOUR, 10)[1]
    whole = [*commits, Commit(0, None, NOW - 2 * HOUR)]
    assert timed_commits(lambda limit: whole[:limit], 3 * HOUR, 10)[1]


@pytest.fixture
def table(tmp_path):
    made = local_table(None, Lakehouse(root=str(tmp_path)).metadata("task_state"))
    assert made.create(SCHEMA, {})
    return made


def planning(before):
    return partial(plan_kept, before=before, is_needed=lambda _: True, marks=True)


def test_positions_are_repeated_in_a_commit_without_rows(table):
    """Transactions stay as they are: the next commit of an application is its next version."""
    table.append([{"id": "a"}], tag(1))
    table.append([{"id": "b"}], tag(4, app="other"))
    assert table.repeat(planning(datetime.now(timezone.utc) + HOUR))
    assert newest_own_commit(table.commits, "app").tag == again(tag(1))
    assert newest_own_commit(table.commits, "app").version == newest_own_commit(table.commits, "other").version == 3
    assert [table.transaction_version(app) for app in ("app", "other", "third")] == [1, 4, None]
    assert not table.repeat(planning(datetime.now(timezone.utc) - HOUR))
    assert table.append([{"id": "c"}], tag(2)).version == 4
    assert sorted(row["id"] for row in table.rows()) == ["a", "b", "c"]
    assert newest_own_commit(table.commits, "app").tag == tag(2)


def test_a_position_that_moves_on_meanwhile_is_not_repeated(table):
    """The commit would follow the newer one, and then be the newest."""
    for app in ("app", "idle"):
        table.append([{"id": app}], tag(1, app=app))
    seen = []

    def plan(commits):
        found = planning(datetime.now(timezone.utc) + HOUR)(commits)
        if not seen:
            table.append([{"id": "a"}], tag(2))
        seen.append(found)
        return found

    assert table.repeat(plan)
    assert len(seen) == 2
    assert newest_own_commit(table.commits, "app").tag == again(tag(2))

    def always(commits):
        found = planning(datetime.now(timezone.utc) + HOUR)(commits)
        table.append([{"id": "a"}], tag(table.transaction_version("app") + 1))
        return found

    with pytest.raises(CommitConflict):
        table.repeat(always)
    assert not newest_own_commit(table.commits, "app").tag.again
