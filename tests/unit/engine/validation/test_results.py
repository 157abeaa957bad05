"""Which results of `dmdelta validate` require an operator."""

import pytest

from dmdelta.engine.validation.results import Against, Outcome, Validated, ValidateRequest, outcome_of


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


def test_a_request_without_options_compares_every_table_and_changes_none():
    """It compares all sources with silver, and repairs nothing."""
    request = ValidateRequest()
    assert (request.table, request.source, request.against, request.fix) == ("*", None, Against.SILVER, False)


def test_a_result_without_figures_is_no_difference():
    """A table that was not compared has no counts, and was not repaired."""
    found = Validated(source="s1", table="d.t", status=Outcome.NOT_COMPARED, reason="it has no key")
    assert (found.missing, found.extra, found.different, found.not_looked_at, found.left_out_rows) == (0, 0, 0, 0, 0)
    assert (found.differences, found.uncompared, found.fixed, found.against) == ((), (), False, Against.SILVER)
