"""`spark-submit … spark_submit.py run SPEC`: spark-submit configures Spark."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
import yaml

from dmdelta.lakehouse.jars import delta_confs
from dmdelta.lakehouse.session import DELTA_CATALOG, DELTA_EXTENSION
from tests.support.jvm import local_environment

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_a_task_runs_in_the_spark_of_spark_submit(tmp_path: Path) -> None:
    """The recorded shop reaches silver; the master is that of the command line, not dmdelta's choice."""
    spec = yaml.safe_load((ROOT / "pipelines/quickstart.yml").read_text())
    spec["sources"] = [
        {**source, "binlog-dir": str(ROOT / "pipelines" / source["binlog-dir"])} for source in spec["sources"]
    ]
    spec["quality"] = {"schemas": str(ROOT / "schemas")}
    (tmp_path / "task.yml").write_text(yaml.safe_dump({**spec, "lakehouse": {"root": "lake"}}))
    (tmp_path / "events").mkdir()
    confs = {
        **delta_confs(),
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
        "spark.driver.host": "localhost",
        "spark.sql.shuffle.partitions": "2",
    }
    named = [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    submit = Path(pyspark.__file__).parent / "bin/spark-submit"
    arguments = ["run", str(tmp_path / "task.yml"), "--until-caught-up"]
    environment = {
        **local_environment(),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(submit.parents[1]),
    }
    done = subprocess.run(
        [submit, "--master", "local[1]", *named, ROOT / "examples/spark_submit.py", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "lake/silver/shop/orders/_delta_log/00000000000000000000.json").is_file()
    told = "".join(file.read_text() for file in (tmp_path / "events").rglob("*") if file.is_file())
    assert '"spark.master":"local[1]"' in told
