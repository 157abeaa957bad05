"""A TCP proxy that delays all data: a distant server. It runs in a process of its own.

python -m benchmarks.delayed 3306 5     # prints its port; every round trip to port 3306 takes 5 ms longer
"""

import argparse
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HOST = "127.0.0.1"
CHUNK = 1 << 16
CHUNKS_IN_FLIGHT = 256

InFlight = queue.Queue[tuple[float, bytes]]
"""Chunks and the time when each is due; an empty one is the end."""


@contextmanager
def delayed(port: int, milliseconds: float) -> Iterator[int]:
    """Run the proxy for the duration of a `with`; its port.

    Args:
        port: the server's.
        milliseconds: what is added to each round trip, half of it in each direction.
    """
    command = [sys.executable, "-m", "benchmarks.delayed", str(port), str(milliseconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def serve(port: int, seconds: float) -> None:
    """Accept connections until the process is killed."""
    with socket.create_server((HOST, 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            client, _ = listening.accept()
            server = socket.create_connection((HOST, port))
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                in_flight: InFlight = queue.Queue(CHUNKS_IN_FLIGHT)
                threading.Thread(target=_receive, args=(one, in_flight, seconds / 2), daemon=True).start()
                threading.Thread(target=_deliver, args=(other, in_flight), daemon=True).start()


def _receive(one: socket.socket, in_flight: InFlight, seconds: float) -> None:
    """Every chunk is due so many seconds after it arrived: the delay does not limit the throughput."""
    chunk = b"-"
    while chunk:
        try:
            chunk = one.recv(CHUNK)
        except OSError:
            chunk = b""
        in_flight.put((time.monotonic() + seconds, chunk))


def _deliver(other: socket.socket, in_flight: InFlight) -> None:
    with suppress(OSError):
        while (arrived := in_flight.get())[1]:
            time.sleep(max(0.0, arrived[0] - time.monotonic()))
            other.sendall(arrived[1])
        other.shutdown(socket.SHUT_WR)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("milliseconds", type=float)
    chosen = parser.parse_args()
    serve(chosen.port, chosen.milliseconds / 1000)


if __name__ == "__main__":
    main()
