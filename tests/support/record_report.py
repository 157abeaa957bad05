"""Takes docs/report.png of a real pipeline: `python -m tests.support.record_report [minutes]`.

A shop on MySQL 8.0 is written by two clerks, faster and slower in turns, while the pipeline runs; a column joins halfway.
"""

import math
import sys
import tempfile
import time
from pathlib import Path

from dmdelta.cli.main import execute
from tests.support.browser import browsing, shown
from tests.support.servers import running
from tests.support.task import Task
from tests.support.workload import Workload

TARGET = Path(__file__).resolve().parents[2] / "docs" / "report.png"
MOST_BYTES = 200_000
TURN_SECONDS = 15
WIDTH, HEIGHT = 1180, 1010


def main(minutes: float) -> None:
    with running("mysql80") as server, tempfile.TemporaryDirectory() as folder:
        server.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
        task = Task(Path(folder), server, "shop", name="shop", source_id="shop-mysql")
        task.start_here()
        with task.process() as process:
            with Workload(server, "shop", writers=2, per_second=25) as work:
                turns = int(60 * minutes / TURN_SECONDS)
                for turn in range(turns):
                    if turn == turns // 2:
                        server.execute("ALTER TABLE orders ADD note VARCHAR(80)", database="shop")
                    rest = TURN_SECONDS * 0.8 * math.sin(turn / 3) ** 2
                    with work.paused():
                        time.sleep(rest)
                    time.sleep(TURN_SECONDS - rest)
            time.sleep(2 * TURN_SECONDS)
            page = Path(folder) / "report.html"
            with task.environment():
                assert execute(["report", str(task.spec), "-o", str(page)]) == 0
            process.terminate()
            process.wait(120)
        with browsing() as browser, shown(browser, page, WIDTH) as found:
            found.page.screenshot(path=TARGET, clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT}, full_page=True)
    assert TARGET.stat().st_size < MOST_BYTES
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
