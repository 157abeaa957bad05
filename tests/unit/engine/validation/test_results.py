"""Which results of `dmdelta validate` require an operator."""

import pytest

from dmdelta.engine.validation.results import Outcome, Validated, outcome_of


@pytest.mark.parametrize(
    ("differs", "uncompared", "outcome"),
    [
        (False, False, Outcome.SAME),
        (False, True, Outcome.PARTLY_COMPARED),
        (True, False, Outcome.DIFFERS),
        (True, True, Outcome.DIFFERS),
    ],
)
def test_the_outcome_of_a_comparison(differs, uncompared, outcome):
    """A difference is reported, whether or not everything was compared."""
    assert outcome_of(differs=differs, uncompared=uncompared) is outcome


@pytest.mark.parametrize(
    ("status", "fixed", "more", "clean"),
    [
        (Outcome.SAME, False, {}, True),
        (Outcome.EXCLUDED, False, {}, True),
        (Outcome.DIFFERS, False, {}, False),
        (Outcome.PARTLY_COMPARED, False, {}, False),
        (Outcome.NOT_COMPARED, False, {}, False),
        (Outcome.DIFFERS, True, {}, True),
        (Outcome.DIFFERS, True, {"not_looked_at": 1}, False),
        (Outcome.DIFFERS, True, {"uncompared": ("c",)}, False),
        (Outcome.SAME, True, {"uncompared": ("c",)}, True),
    ],
)
def test_a_repaired_table_is_clean_if_all_of_it_was_compared(status, fixed, more, clean):
    assert Validated(source="s1", table="d.t", status=status, fixed=fixed, **more).is_clean is clean
