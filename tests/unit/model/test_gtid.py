"""GTID sets obey set algebra, in both notations."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.errors import ConfigError
from dmdelta.model.gtid import GtidRun, MariadbGtidSet, MysqlGtidSet, extend, grown, parse_gtid_set, run_of

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"

gtids = st.lists(st.tuples(st.sampled_from([A, B, f"{A}:tag", f"{B}:a_1"]), st.integers(1, 40)), max_size=40)
maria_gtids = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 40)), max_size=20)


def mysql_set(members) -> MysqlGtidSet:
    found = MysqlGtidSet()
    for name, number in members:
        found = found.add(f"{name}:{number}")
    return found


def members_of(gtid_set: MysqlGtidSet) -> set[tuple[str, int]]:
    return {
        (name, number)
        for name, spans in gtid_set.intervals.items()
        for first, last in spans
        for number in range(first, last + 1)
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        (f"{A}:1-3:5", f"{A}:1-3:5"),
        (f"{A}:5:1-3:4", f"{A}:1-5"),
        (f"{A.upper()}:1,\n{B}:7", f"{A}:1,{B}:7"),
        (f"{A}:1-18:tag:1:3-4", f"{A}:1-18,{A}:tag:1:3-4"),
        (f"{A}:tag:1", f"{A}:tag:1"),
    ],
)
def test_mysql_notations_are_parsed(text: str, shown: str) -> None:
    """Line breaks, upper case, overlapping intervals and tags parse to the same set."""
    assert str(parse_gtid_set(text, "mysql")) == shown


@pytest.mark.parametrize("text", ["x", f"{A}", f"{A}:a-b", f"{A}:1-", "0-1-2", f"{A}:TAG-1:2"])
def test_an_invalid_mysql_set_is_refused(text: str) -> None:
    """The error quotes the text."""
    with pytest.raises(ConfigError, match="is not a GTID set"):
        parse_gtid_set(text, "mysql")


@pytest.mark.parametrize("text", ["x", "1-2", f"{A}:1", "0-1-"])
def test_an_invalid_mariadb_set_is_refused(text: str) -> None:
    """The error quotes the text."""
    with pytest.raises(ConfigError, match="is not a GTID set"):
        parse_gtid_set(text, "mariadb")


@given(gtids)
def test_a_mysql_set_round_trips_through_text(members) -> None:
    """Parsing a set's text gives the same set, in canonical form."""
    one = mysql_set(members)
    assert parse_gtid_set(str(one), "mysql") == one
    assert str(parse_gtid_set(str(one), "mysql")) == str(one)
    assert members_of(one) == set(members)


@given(gtids, gtids)
def test_mysql_sets_obey_set_algebra(left, right) -> None:
    """Union and difference agree with Python's sets of single GTIDs; a set contains another that is not ahead."""
    one, two = mysql_set(left), mysql_set(right)
    assert members_of(one.union(two)) == set(left) | set(right)
    assert members_of(one.minus(two)) == set(left) - set(right)
    assert (not two.minus(one)) == (set(left) >= set(right))
    assert bool(one) == bool(left)


@given(gtids, st.integers(1, 40))
def test_the_members_of_a_mysql_set(members, number) -> None:
    """A set contains the transactions that it was made of, in any letter case, and no other."""
    for name in (A, B, f"{A}:tag"):
        assert (f"{name.upper()}:{number}" in mysql_set(members)) == ((name, number) in members)


@given(maria_gtids, st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 40)))
def test_the_members_of_a_mariadb_set(members, other) -> None:
    """A set contains everything of a domain up to its newest sequence number, whatever the server."""
    domain, server, number = other
    newest = max((n for d, _, n in members if d == domain), default=0)
    assert (f"{domain}-{server}-{number}" in mariadb_set(members)) == (number <= newest)


def runs_of(texts) -> list[GtidRun]:
    found: list[GtidRun] = []
    for text in texts:
        extend(found, run_of(text))
    return found


def mariadb_set(members) -> MariadbGtidSet:
    found = grown(MariadbGtidSet(), runs_of(f"{d}-{s}-{n}" for d, s, n in members))
    assert isinstance(found, MariadbGtidSet)
    return found


@given(gtids, gtids)
def test_adding_runs_equals_adding_single_gtids(before, members) -> None:
    """Adding a set of runs at once gives the same set as adding one GTID at a time, whatever the initial set."""
    runs = runs_of(f"{name}:{number}" for name, number in members)
    assert grown(mysql_set(before), runs) == mysql_set([*before, *members])


@given(maria_gtids, maria_gtids)
def test_adding_runs_to_a_mariadb_set_equals_adding_single_gtids(before, members) -> None:
    """For equal sequence numbers in a domain, the first server ID is kept."""
    one_by_one = MariadbGtidSet()
    for d, s, n in [*before, *members]:
        one_by_one = one_by_one.add(f"{d}-{s}-{n}")
    runs = runs_of(f"{d}-{s}-{n}" for d, s, n in members)
    assert grown(mariadb_set(before), runs) == one_by_one


@given(st.lists(st.tuples(st.sampled_from([A, f"{B}:tag"]), st.integers(1, 6)), max_size=30))
def test_runs_keep_log_order(members) -> None:
    """Only adjacent GTIDs are joined, so that the runs expand to the original sequence of GTIDs."""
    texts = [f"{name}:{number}" for name, number in members]
    runs = runs_of(texts)
    assert [f"{name}:{number}" for name, first, last in runs for number in range(first, last + 1)] == texts
    assert all(one.name != two.name or one.last + 1 != two.first for one, two in pairwise(runs))


def test_runs_of_the_other_flavor_are_refused() -> None:
    """A set of one flavor cannot hold GTIDs of the other."""
    with pytest.raises(ConfigError, match="is not a GTID set"):
        grown(MysqlGtidSet(), [run_of("0-1-7")])
    with pytest.raises(ConfigError, match="is not a GTID set"):
        grown(MariadbGtidSet(), [run_of(f"{A}:7")])


@given(maria_gtids, maria_gtids)
def test_mariadb_sets_keep_the_newest_of_each_domain(left, right) -> None:
    """A set holds everything of a domain up to its newest sequence number."""
    one, two = mariadb_set(left), mariadb_set(right)
    both = one.union(two)
    assert isinstance(both, MariadbGtidSet)
    assert {d: n for d, (_, n) in both.newest.items()} == newest([*left, *right])
    assert not one.minus(both)
    assert not two.minus(both)
    assert parse_gtid_set(str(both), "mariadb") == both


def newest(members) -> dict[int, int]:
    found: dict[int, int] = {}
    for domain, _, number in members:
        found[domain] = max(number, found.get(domain, 0))
    return found


@given(gtids, gtids, gtids)
def test_mysql_set_union_is_commutative_and_idempotent(left, right, third) -> None:
    """Order and repetition make no difference; equal sets are equal objects with the same text."""
    one, two, three = map(mysql_set, (left, right, third))
    assert one.union(two) == two.union(one)
    assert one.union(two).union(three) == one.union(two.union(three))
    assert one.union(one) == one.union(MysqlGtidSet()) == one
    assert one.minus(two).union(one.minus(one.minus(two))) == one
    assert one.minus(two.union(three)) == one.minus(two).minus(three)
    assert not one.minus(one)
    assert (not one.minus(two) and not two.minus(one)) == (one == two) == (str(one) == str(two))


@given(st.lists(st.tuples(st.sampled_from([A, f"{A}:tag", B]), st.integers(1, 60), st.integers(0, 9)), max_size=12))
def test_any_notation_of_a_mysql_set_is_the_same_set(spans) -> None:
    """Intervals in any order, overlapping or adjacent, in any letter case."""
    text = ", ".join(f"{name.replace(A, A.upper())}:{first}-{first + more}" for name, first, more in spans)
    expected = {(name, number) for name, first, more in spans for number in range(first, first + more + 1)}
    found = parse_gtid_set(text, "mysql")
    assert members_of(found) == expected
    assert found == mysql_set(sorted(expected))


@given(maria_gtids, maria_gtids, maria_gtids)
def test_mariadb_sets_obey_set_algebra(left, right, third) -> None:
    """Union takes the newer GTID of each domain, in any order; the difference is the domains where the other is behind."""
    one, two, three = map(mariadb_set, (left, right, third))
    assert numbers_of(one.union(two)) == numbers_of(two.union(one)) == newest([*left, *right])
    assert one.union(two).union(three) == one.union(two.union(three))
    assert one.union(one) == one.union(MariadbGtidSet()) == one
    behind = newest(right)
    ahead = {domain: number for domain, number in newest(left).items() if number > behind.get(domain, 0)}
    assert numbers_of(one.minus(two)) == ahead
    assert (not two.minus(one)) == all(newest(left).get(domain, 0) >= number for domain, number in behind.items())
    assert numbers_of(one.union(two)) == numbers_of(two.union(one.minus(two)))


def numbers_of(gtid_set: MariadbGtidSet) -> dict[int, int]:
    return {domain: number for domain, (_, number) in gtid_set.newest.items()}


@given(st.permutations(range(1, 30)), st.integers(1, 29))
def test_a_mysql_set_does_not_depend_on_insertion_order(order, size) -> None:
    """Transactions of parallel appliers arrive in any order: gaps are kept and closed later."""
    grown_set = mysql_set((A, number) for number in order[:size])
    assert members_of(grown_set) == {(A, number) for number in order[:size]}
    assert str(mysql_set((A, number) for number in order)) == f"{A}:1-29"
