"""Names and texts with any characters are passed to Spark unchanged."""

import pytest

from dmdelta.lakehouse.session import clone_session
from dmdelta.model.spark_sql import literal, quote

TEXTS = (
    "${env:HOME}",
    "${HOME}",
    "\\${HOME}",
    "\\u0024{x}",
    "{0} %s $1 \\1",
    'it\'s `a` "b" \\',
    "\0\t\n☃😀",
    "--;/*",
    "",
)
CONF = "spark.sql.variable.substitute"


@pytest.mark.parametrize("substitutes", ["false", "true"])
def test_texts(spark, substitutes):
    """Also in a session that substitutes variables."""
    session = clone_session(spark)
    session.conf.set(CONF, substitutes)
    assert list(session.sql(f"SELECT {', '.join(map(literal, TEXTS))}").head()) == list(TEXTS)


def test_names(spark):
    """A name cannot be escaped, so dmdelta's sessions disable substitution."""
    names = [text for text in TEXTS if text]
    for session in (spark, clone_session(spark)):
        assert session.conf.get(CONF) == "false"
        assert session.sql(f"SELECT {', '.join(f'1 AS {quote(name)}' for name in names)}").columns == names
