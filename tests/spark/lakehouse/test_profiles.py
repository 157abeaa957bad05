"""Sessions for small and for large commits."""

import json
import subprocess
import sys

import pytest

from dmdelta.lakehouse.profiles import SMALL_BYTES, SMALL_CONFS, SMALL_ROWS, Profile, plan_profile, profile_session
from tests.support.jvm import local_environment

SHOW_ZONE = """
import json
from dmdelta.lakehouse.session import open_session
spark = open_session("zone")
query = '''SELECT java_method('java.time.ZoneId', 'systemDefault') AS zone, current_timezone() AS session,
    CAST(TIMESTAMP'2026-07-01 12:00:00' AS STRING) AS shown, unix_seconds(TIMESTAMP'2026-07-01 12:00:00') AS seconds'''
print(json.dumps(spark.sql(query).collect()[0].asDict()))
"""


def test_a_session_has_the_confs_of_its_profile(spark, tmp_path):
    """The small one interprets and has one shuffle partition; the large one has the confs of the original session."""
    small, large = (profile_session(spark, profile) for profile in (Profile.SMALL, Profile.LARGE))
    names = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "spark.sql.session.timeZone")
    assert [small.conf.get(name) for name in names] == ["1", "false", "UTC"]
    assert [large.conf.get(name) for name in names] == [spark.conf.get(name) for name in names]
    assert [spark.conf.get(name) for name in names][1:] == ["true", "UTC"]
    # A conf that does not exist can be set, but not read where it is not set. Delta's exist once it is loaded.
    spark.range(1).write.format("delta").save(str(tmp_path / "table"))
    assert {name: spark.conf.get(name) for name in SMALL_CONFS} != SMALL_CONFS
    assert {name: small.conf.get(name) for name in SMALL_CONFS} == SMALL_CONFS


@pytest.mark.parametrize(
    ("rows", "scanned", "profile"),
    [
        (0, 0, Profile.SMALL),
        (SMALL_ROWS, SMALL_BYTES, Profile.SMALL),
        (SMALL_ROWS + 1, 0, Profile.LARGE),
        (1, SMALL_BYTES + 1, Profile.LARGE),
    ],
)
def test_the_profile_follows_from_the_size(rows, scanned, profile):
    """Few rows from a large part of the log are not a small commit."""
    assert plan_profile(rows, scanned) is profile


def test_the_local_jvm_runs_in_utc():
    """Whatever the zone of the machine is: in other zones Delta verifies file lists at every commit."""
    environment = {**local_environment(), "TZ": "America/New_York"}
    command = [sys.executable, "-c", SHOW_ZONE]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    seconds = 1_782_907_200  # 2026-07-01 12:00:00 UTC
    expected = {"zone": "UTC", "session": "UTC", "shown": "2026-07-01 12:00:00", "seconds": seconds}
    assert json.loads(shown) == expected
