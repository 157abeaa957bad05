"""PSS and CPU time from the text of /proc, and their trend."""

import os
import subprocess
import sys
import time

import pytest

from benchmarks.cpu import by_kind, parse_cpu
from benchmarks.usage import Usage, cpu_of, each_minute, memory_of, sampling, usage_below
from tests.support.memory import parse_pss, pss

ROLLUP = """5581a0a3e000-7ffd5e1d4000 ---p 00000000 00:00 0                          [rollup]
Rss:             1500000 kB
Pss:              400001 kB
Pss_Dirty:        300000 kB
Pss_Anon:         300000 kB
Shared_Clean:       1000 kB
SwapPss:               0 kB
"""


def usage(at: float, size: int, cpu: float = 0.0) -> Usage:
    return Usage(at, size - 10, 10, 10, 2 * cpu, cpu)


def test_pss_is_read_from_its_own_line():
    assert parse_pss(ROLLUP) == 400_001 * 1024


def test_an_ended_process_has_no_memory():
    assert parse_pss("") == 0


def test_cpu_time_is_found_behind_any_program_name():
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"7 (a ) b (c) R 1 7 7 0 -1 4194304 1 2 3 4 {3 * ticks} {2 * ticks} {ticks} {4 * ticks} 20 0 1 0"
    assert parse_cpu(stat) == (5.0, 5.0)


def test_threads_of_a_jvm_are_summed_by_kind():
    ticks = os.sysconf("SC_CLK_TCK")
    names = (
        "C2 CompilerThre",
        "C1 CompilerThre",
        "GC Thread#0",
        "Executor task l",
        "Thread-95",
        "Thread-4",
        "java",
        "a (b)",
    )
    stats = [f"7 ({name}) S 1 7 7 0 -1 4194304 1 2 3 4 {ticks} {ticks} 0 0 20 0 1 0" for name in names]
    assert by_kind(stats) == {"JIT": 4, "GC": 2, "tasks": 2, "driver": 4, "other": 4}


def test_each_minute_has_its_last_sample():
    samples = [Usage(at, int(java * 1e9), int(java * 1e8), 0, 0, 0) for at, java in ((5, 1), (60, 2), (64, 3), (70, 4))]
    found = each_minute(samples)
    assert found == "Memory (PSS) after each minute in GB, JVM: 3.00, 4.00; Python: 0.30, 0.40."


def test_a_process_is_measured():
    """Its PSS and CPU time equal those of the kernel; it has no JVM."""
    program = "import sys; sum(range(10_000_000)); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = usage_below(process.pid)
        own = pss(process.pid)
        process.stdin.close()
    assert found.python == found.largest
    assert own // 2 < found.python < 2 * own
    assert (found.java, found.java_cpu) == (0, 0)
    assert found.python_cpu > 0


FORKING = """
import os
from benchmarks.usage import usage_below
ballast = os.urandom(64 << 20)
alone, child = usage_below(os.getpid()), os.fork()
if child == 0:
    os.read(0, 1)
    os._exit(0)
both = usage_below(os.getpid())
os.write(1, f"{alone.bytes} {both.bytes} {both.largest}\\n".encode())
"""


def test_a_forked_child_shares_its_pages():
    """PSS is additive: with a child that shares all of a process's pages, the sum is about the same."""
    with subprocess.Popen([sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        alone, both, largest = map(int, process.stdout.readline().split())
        process.stdin.close()  # the child ends
    assert alone > 64 << 20
    assert both < alone + (32 << 20)
    assert largest < alone


def test_samples_end_with_the_block():
    with sampling(os.getpid(), every=0.01) as samples:
        while len(samples) < 3:
            time.sleep(0.01)
    number = len(samples)
    time.sleep(0.05)
    assert len(samples) == number
    assert samples[-1].at > samples[0].at


@pytest.mark.parametrize(
    ("slope", "flat"),
    [(0, True), (-1000, True), (3_000, True), (4_000, False)],
)
def test_memory_is_flat_if_its_trend_is_a_small_part_of_it(slope, flat):
    """10 % of about 10 MB within 300 s are 3.3 kB per second."""
    samples = [usage(float(at), 10_000_000 + slope * at) for at in range(0, 301, 5)]
    found = memory_of(samples)
    assert found.slope == pytest.approx(slope, abs=1e-6)
    assert found.flat is flat
    assert found.seconds == 300


def test_a_peak_does_not_make_memory_grow():
    samples = [usage(float(at), 20_000_000 if at == 150 else 10_000_000) for at in range(0, 301, 5)]
    found = memory_of(samples)
    assert (found.least, found.median, found.most, found.flat) == (10_000_000, 10_000_000, 20_000_000, True)


def test_cpu_time_is_that_between_the_first_and_the_last_sample():
    found = cpu_of([usage(10, 1, cpu=5), usage(20, 1, cpu=6), usage(30, 1, cpu=9)])
    assert (found.java, found.python, found.seconds) == (8, 4, 20)


@pytest.mark.parametrize("figure", [memory_of, cpu_of])
def test_a_single_sample_has_no_trend(figure):
    with pytest.raises(ValueError, match="measure for longer"):
        figure([usage(1, 100)])
