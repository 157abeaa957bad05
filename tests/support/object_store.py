"""A read-only S3 service over a folder, with the operations that delta-rs needs: get, range, head, list.

It checks that a request is signed, but not the signature. It is a separate process: delta-rs holds Python's global
interpreter lock while it waits for a response.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "lake"


@contextmanager
def serving_objects(folder: Path) -> Iterator[dict[str, str]]:
    """Serve a folder as the bucket `lake`; yields the environment variables with which delta-rs finds it."""
    command = [sys.executable, "-m", "tests.support.object_store", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield {
                "AWS_ENDPOINT_URL": process.stdout.readline().strip(),
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_REGION": "eu-central-1",
            }
        finally:
            process.kill()


def serve(folder: Path) -> None:
    """Serve a folder until the process is killed; prints the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def _answer(self, *, with_body: bool) -> None:
            parts = urlsplit(self.path)
            if "Authorization" not in self.headers:
                self._send(403, b"<Error><Code>AccessDenied</Code></Error>", with_body=with_body)
                return
            query, path = parse_qs(parts.query), unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
            if "list-type" in query:
                self._send(200, listing(folder, query), with_body=with_body)
                return
            file = folder / path
            if not file.is_file():
                self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", with_body=with_body)
                return
            data, code, headers = file.read_bytes(), 200, {"ETag": f'"{file.stat().st_mtime_ns}"'}
            wanted = self.headers.get("Range")
            if wanted:
                begin, end = selected(wanted, len(data))
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
                data, code = data[begin:end], 206
            self._send(code, data, headers, with_body=with_body)

        def _send(self, code: int, body: bytes, headers: dict[str, str] | None = None, *, with_body: bool) -> None:
            self.send_response(code)
            headers = {"Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT", **(headers or {})}
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def selected(header: str, size: int) -> tuple[int, int]:
    """The half-open byte range that a header requests."""
    begin, _, end = header.removeprefix("bytes=").partition("-")
    if not begin:
        return max(0, size - int(end)), size
    return int(begin), min(size, int(end) + 1 if end else size)


def listing(folder: Path, query: dict[str, list[str]]) -> bytes:
    """The answer to ListObjectsV2, in one page."""
    prefix, after = (query.get(name, [""])[0] for name in ("prefix", "start-after"))
    delimiter, prefixes, contents = query.get("delimiter", [""])[0], dict[str, None](), []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        key = file.relative_to(folder).as_posix()
        if not key.startswith(prefix) or key <= after:
            continue
        deeper = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if deeper[1]:
            prefixes[prefix + deeper[0] + delimiter] = None
            continue
        contents.append(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{file.stat().st_mtime_ns}&quot;</ETag><Size>{file.stat().st_size}</Size></Contents>"
        )
    common = "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in prefixes)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>{''.join(contents)}{common}</ListBucketResult>"
    ).encode()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
