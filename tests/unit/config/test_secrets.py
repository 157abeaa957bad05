"""References in a spec: to the environment, to files, and to the secrets of a Databricks workspace."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from dmdelta.config import load_spec
from dmdelta.errors import ConfigError

SPEC = """\
name: shop
sources:
  - source-id: one
    host: db.example
    user: dmdelta
    password: "{{secrets/shop/mysql-password}}"
    relay: {dir: /Volumes/main/dm_meta/relay}
lakehouse:
  catalog: main
"""


class Workspace(BaseHTTPRequestHandler):
    """The part of a workspace's REST API that reading a secret uses; it has one secret."""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        names = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if asked.path == "/api/2.0/secrets/get" and names == {"scope": "shop", "key": "mysql-password"}:
            self._answer(200, {"key": "mysql-password", "value": base64.b64encode(b"s3cret").decode()})
        else:
            self._answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such secret"})

    def _answer(self, status: int, body: dict[str, str]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Suppresses output on the terminal."""


@pytest.fixture
def _workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Configures the SDK for the test's own workspace."""
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Workspace) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DATABRICKS_HOST", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("DATABRICKS_TOKEN", "of-the-test")
        yield
        server.shutdown()


@pytest.mark.usefixtures("_workspace")
def test_a_secret_comes_from_the_workspace(tmp_path: Path) -> None:
    """Through the SDK, so a job needs no environment variable; the spec never shows it."""
    path = tmp_path / "spec.yml"
    path.write_text(SPEC)
    spec = load_spec(path)
    assert spec.sources[0].password.get_secret_value() == "s3cret"
    assert "s3cret" not in repr(spec)


@pytest.mark.usefixtures("_workspace")
def test_a_missing_secret_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "spec.yml"
    path.write_text(SPEC.replace("mysql-password", "another"))
    with pytest.raises(ConfigError) as caught:
        load_spec(path)
    assert f"{path}:6: sources[0].password: the secret shop/another cannot be read" in caught.value.message
    assert "no such secret" in caught.value.message


@pytest.mark.parametrize(
    ("content", "password"),
    [(b"s3cret\n", "s3cret"), (b"s3cret", "s3cret"), (b" a: *b\r\n", " a: *b"), (b"p\xe4ss\n", "p\udce4ss")],
)
def test_a_secret_comes_from_a_file(tmp_path: Path, content: bytes, password: str) -> None:
    """The file's content without the trailing newline; a relative path is relative to the spec's folder."""
    path = tmp_path / "spec.yml"
    (tmp_path / "mysql").write_bytes(content)
    for place in ("mysql", str(tmp_path / "mysql")):
        path.write_text(SPEC.replace("{{secrets/shop/mysql-password}}", f"${{file:{place}}}"))
        spec = load_spec(path, {})
        assert spec.sources[0].password.get_secret_value() == password
        assert not spec.variables_of_passwords


def test_a_missing_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "spec.yml"
    path.write_text(SPEC.replace("{{secrets/shop/mysql-password}}", "${file:none}"))
    with pytest.raises(ConfigError) as caught:
        load_spec(path, {})
    assert f"{path}:6: sources[0].password: the file {tmp_path / 'none'} cannot be read" in caught.value.message
