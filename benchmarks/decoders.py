"""CPU time of one decoder over the same binlog, in a process of its own: prints a JSON line.

python -m benchmarks.decoders dmdelta FILE...
python -m benchmarks.decoders mysql-replication '{"host": …, "port": …, "user": …, "passwd": …}' FILE-NAME...
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def decode_with_dmdelta(files: list[str]) -> tuple[int, float]:
    """Segments to Arrow, as an executor does it; (rows, CPU seconds without imports)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from dmdelta.bronze.segment_reader import read_group
    from dmdelta.segments import read_path

    changes = pa.array(["insert", "update", "delete"])  # the first array of a process has pyarrow import pandas
    segments = [segment for file in files for segment in read_path(Path(file), "bench")]
    rows, started = 0, time.process_time()
    for batch in read_group(segments, {}):
        rows += pc.sum(pc.is_in(batch.column("op"), changes)).as_py() or 0
    return rows, time.process_time() - started


def decode_with_mysql_replication(connection: dict[str, Any], files: list[str]) -> tuple[int, float]:
    """The whole log from the server, to Python rows; (rows, CPU seconds without imports)."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    stream = BinLogStreamReader(
        connection_settings=connection,
        server_id=987_654,
        log_file=Path(files[0]).name,
        log_pos=4,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        enable_logging=False,
    )
    try:
        started = time.process_time()
        rows = sum(len(event.rows) for event in stream)
        return rows, time.process_time() - started
    finally:
        stream.close()


def main() -> None:
    name, *arguments = sys.argv[1:]
    if name == "dmdelta":
        rows, seconds = decode_with_dmdelta(arguments)
    else:
        rows, seconds = decode_with_mysql_replication(json.loads(arguments[0]), arguments[1:])
    print(json.dumps({"rows": rows, "cpu_seconds": seconds}))


if __name__ == "__main__":
    main()
