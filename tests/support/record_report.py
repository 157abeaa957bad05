"""Takes the screenshot docs/report.png of a made-up busy day: `python -m tests.support.record_report`."""

import tempfile
from pathlib import Path

from dmdelta.report.page import render_page
from tests.support.browser import browsing, shown
from tests.support.reports import busy_report

TARGET = Path(__file__).resolve().parents[2] / "docs" / "report.png"
MOST_BYTES = 200_000
WIDTH, HEIGHT = 1180, 1010


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(render_page(busy_report()), encoding="utf-8")
        with browsing() as browser, shown(browser, page, WIDTH) as found:
            found.page.screenshot(path=TARGET, clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT}, full_page=True)
    assert TARGET.stat().st_size < MOST_BYTES
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
