"""A real browser for pages: Debian's headless Chromium, unpacked below the servers' folder and driven by Playwright.

`python -m tests.support.browser` installs it (a minute). Nothing is installed system-wide.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.support.servers.fetch import fetch_debian
from tests.support.servers.install import locked, servers_folder
from tests.support.servers.kinds import DebianPackages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Chromium re-executes itself, so it uses the system's C library instead of a bundled loader. Without Mesa
# it renders in software.
PACKAGES = DebianPackages(
    "bookworm",
    ("chromium-headless-shell", "fonts-roboto-unhinted"),
    closure=True,
    left_out=("perl", "libperl", "libc6", "libc-bin", "libllvm", "libgl1-mesa-dri", "libz3"),
)
_LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio")
_FONTS = "fonts.conf"
_RECIPE = "2"


@dataclass(frozen=True, slots=True)
class Installation:
    """The unpacked packages."""

    root: Path

    @property
    def program(self) -> Path:
        return self.root / "usr/lib/chromium/chromium-headless-shell"

    @property
    def environment(self) -> dict[str, str | float | bool]:
        """The unpacked libraries and fonts, independent of those of the machine."""
        libraries = ":".join(str(self.root / folder) for folder in _LIBRARIES)
        return {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(self.root / _FONTS), "HOME": tempfile.gettempdir()}


def install_browser() -> Installation:
    """The installation, made at the first call. Safe with concurrent processes.

    Raises:
        InstallError: the installation failed.
    """
    folder = servers_folder()
    folder.mkdir(parents=True, exist_ok=True)
    installation = Installation(folder / "chromium")
    with locked(folder / "chromium.lock"):
        marker = installation.root / "recipe"
        if not marker.exists() or marker.read_text() != _RECIPE:
            shutil.rmtree(installation.root, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=".chromium-", dir=folder) as scratch:
                fetch_debian(PACKAGES, Path(scratch), installation.root)
            folders = (
                f"<dir>{installation.root}/usr/share/fonts</dir><cachedir>{installation.root}/var/fonts</cachedir>"
            )
            (installation.root / _FONTS).write_text(f"<fontconfig>{folders}</fontconfig>")
            marker.write_text(_RECIPE)
    return installation


@contextmanager
def browsing() -> Iterator["Browser"]:
    """Run the browser in a `with` block.

    Raises:
        InstallError: it cannot be installed.
    """
    from playwright.sync_api import sync_playwright

    installation = install_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(installation.program), env=installation.environment, args=["--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True, slots=True)
class Shown:
    """A page in the browser, and what it reported: errors, warnings, attempted requests."""

    page: "Page"
    complaints: list[str]


@contextmanager
def shown(browser: "Browser", path: Path, width: int, scheme: Literal["light", "dark"] = "light") -> Iterator[Shown]:
    """Open a file as a page of the given width, without a network."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: None if request.url == path.as_uri() else complaints.append(request.url))
    try:
        page.goto(path.as_uri())
        yield Shown(page, complaints)
    finally:
        context.close()


if __name__ == "__main__":
    print(f"chromium: {install_browser().root}")
