"""Bad input at the command line: each case has its exit code, names its cause and the next step, and loses nothing."""

import shutil
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from tests.support.relaying import purged_to_the_newest, wait_until
from tests.support.servers import running

ARCHIVE = Path(__file__).parents[2] / "pipelines" / "quickstart-binlogs" / "mysql"


def spec_file(folder: Path, source: dict[str, object], root: Path | str | None = None) -> Path:
    """A spec over one source."""
    place = folder / "task.yml"
    spec = {
        "name": "bad",
        "sources": [{"source-id": "s", **source}],
        "lakehouse": {"root": str(root or folder / "lake")},
    }
    if source.get("host") or source.get("binlog-dir"):
        spec["sources"][0]["relay"] = {"dir": str(folder / "relay")}
    place.write_text(yaml.safe_dump(spec))
    return place


def server_source(server, **changes: object) -> dict[str, object]:
    return {"host": server.host, "port": server.port, "user": server.user, "password": server.password, **changes}


def run(spec: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of `dmdelta run --until-caught-up` and its stderr."""
    code = execute(["run", str(spec), "--until-caught-up"])
    return code, capsys.readouterr().err


def test_an_unknown_key_names_its_line_and_the_nearest_key(tmp_path, capsys):
    """Exit 2: the spec must be fixed."""
    spec = spec_file(tmp_path, {"binlog-dirr": str(ARCHIVE)})
    code, said = run(spec, capsys)
    assert code == 2
    assert "binlog-dirr" in said
    assert "binlog-dir" in said
    assert "task.yml:" in said


def test_a_wrong_password_ends_before_anything_is_started(mysql80, tmp_path, capsys):
    """Exit 3, without a retry, and the password is not repeated."""
    spec = spec_file(tmp_path, server_source(mysql80, password="not-the-password"))
    code, said = run(spec, capsys)
    assert code == 3
    assert "password" in said
    assert "not-the-password" not in said
    assert not (tmp_path / "lake").exists()


def test_missing_privileges_are_named_with_the_grant(mysql80, tmp_path, capsys):
    """Exit 3: the hint is the statement to run."""
    mysql80.execute("CREATE USER IF NOT EXISTS 'poor'@'%' IDENTIFIED BY 'poor-pw'", "GRANT SELECT ON *.* TO 'poor'@'%'")
    spec = spec_file(tmp_path, server_source(mysql80, user="poor", password="poor-pw"))
    code, said = run(spec, capsys)
    assert code == 3
    assert "GRANT" in said
    assert "REPLICATION SLAVE" in said


def test_a_server_in_statement_format_is_refused(tmp_path, capsys):
    """Exit 3: the hint says what to set."""
    with running("mysql80", binlog_format="STATEMENT") as server:
        code, said = run(spec_file(tmp_path, server_source(server)), capsys)
    assert code == 3
    assert "binlog_format" in said
    assert "ROW" in said


def test_a_purged_position_is_lost_not_skipped(tmp_path, capsys):
    """Exit 3: the task does not skip to the oldest log that the server still has."""
    with running("mysql80") as server:
        server.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        wait_until(lambda: purged_to_the_newest(server))
        spec = spec_file(tmp_path, server_source(server, meta={"binlog-name": "binlog.000001", "binlog-pos": 4}))
        code, said = run(spec, capsys)
    assert code == 3
    assert "binlog.000001" in said
    assert "hint:" in said


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_binlog_is_refused_with_its_place(damage, spark, tmp_path, capsys):
    """Exit 3: the file and the offset are named, and nothing of the damaged part lands."""
    archive = tmp_path / "archive"
    shutil.copytree(ARCHIVE, archive)
    file = archive / "binlog.000002"
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0x10
    else:
        del content[-7:]
        (archive / "binlog.000003").write_bytes(content)  # a file behind it: it is not the one that still grows
    file.write_bytes(content)
    code, said = run(spec_file(tmp_path, {"binlog-dir": str(archive)}), capsys)
    assert code == 3, said
    assert "binlog.000002" in said
    assert "hint:" in said


def test_an_unreachable_lakehouse_is_named(spark, tmp_path, capsys):
    """Exit 5: the message has the location that cannot be written."""
    (tmp_path / "file").write_text("not a folder")
    root = tmp_path / "file" / "lake"
    code, said = run(spec_file(tmp_path, {"binlog-dir": str(ARCHIVE)}, root), capsys)
    assert code == 5, said
    assert str(root) in said


def test_a_foreign_table_at_a_silver_path_is_left_alone(spark, tmp_path, capsys):
    """Exit 5: the error names it, and it keeps its rows."""
    place = tmp_path / "lake" / "silver" / "shop" / "orders"
    spark.range(3).write.format("delta").save(str(place))
    code, said = run(spec_file(tmp_path, {"binlog-dir": str(ARCHIVE)}), capsys)
    assert code == 5, said
    assert str(place) in said
    assert spark.read.format("delta").load(str(place)).count() == 3
