"""Quoting for MySQL."""

import pytest

from dmdelta.model.mysql_sql import quoted_name


@pytest.mark.parametrize(
    ("names", "quoted"), [(("a",), "`a`"), (("a`b", "t"), "`a``b`.`t`"), (("a.b", "``"), "`a.b`.``````"), (("",), "``")]
)
def test_a_name_is_quoted(names: tuple[str, ...], quoted: str) -> None:
    """Backticks are doubled."""
    assert quoted_name(*names) == quoted
