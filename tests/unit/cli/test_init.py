"""`dmdelta init` writes a spec that loads."""

from pathlib import Path

from dmdelta.cli.init import TEMPLATE
from dmdelta.cli.main import execute
from dmdelta.config import load_spec

EXAMPLE = Path(__file__).resolve().parents[3] / "pipelines/mysql.example.yml"


def test_init_writes_a_spec_that_loads(tmp_path, capsys):
    """The file is valid once its variable is set, and the next command is named."""
    path = tmp_path / "my.yml"
    assert execute(["init", str(path)]) == 0
    assert load_spec(path, {"MYSQL_PASSWORD": "x"}).name == "shop"
    assert f"dmdelta check {path}" in capsys.readouterr().out


def test_init_overwrites_nothing(tmp_path, capsys):
    """An existing file is not changed."""
    path = tmp_path / "my.yml"
    path.write_text("mine")
    assert execute(["init", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "exists" in capsys.readouterr().err


def test_init_reports_a_missing_folder(tmp_path, capsys):
    """No traceback for a wrong path."""
    assert execute(["init", str(tmp_path / "none" / "my.yml")]) == 2
    assert "cannot write" in capsys.readouterr().err


COMMENT = """
# quality: # contracts of silver's tables, one file a table: docs/quality.md
#   schemas: schemas # schemas/shop/orders.yml is the contract of shop.orders
"""


def test_the_shipped_example_is_what_init_writes():
    """pipelines/mysql.example.yml equals the template, except for the contracts, which only the repository has."""
    assert COMMENT in TEMPLATE
    contracts = COMMENT.replace("# quality:", "quality:").replace("#   schemas: schemas", "  schemas: ../schemas")
    assert EXAMPLE.read_text(encoding="utf-8") == TEMPLATE.replace(COMMENT, contracts)
