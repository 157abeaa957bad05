"""The rows that a replay quarantines."""

from types import SimpleNamespace

from dmdelta.config import ExpectationConfig
from dmdelta.engine.replay.check import ReplayCheck
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.quality.suite import Expectation
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.silver_context import SilverContext
from tests.support.commit_tags import tag

CONTEXT = SilverContext(Lakehouse(root="/lake"), "task", "s", "run", "mysql", NO_RULES)


def test_rows_in_the_quarantine_of_a_replay_cannot_be_released():
    """No command knows the quarantine of its own table."""
    config = ExpectationConfig(
        type="expect_column_values_to_not_be_null", kwargs={"column": "v"}, on_failure="quarantine"
    )
    suites = SimpleNamespace(of=lambda _: SimpleNamespace(row_wise=[Expectation(config, "v: nullable: false")]))
    check = ReplayCheck(SimpleNamespace(context=CONTEXT, suites=suites), None)
    request = ApplyRequest(context=CONTEXT, schema="d", table="t", begin=tag(1).begin, end=tag(1).end, batch=1)
    assert request.context.can_release
    assert not check.guard(("d", "t"))(request).context.can_release
