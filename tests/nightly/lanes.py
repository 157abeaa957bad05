"""The lanes of `make nightly`, in order: what each runs, and in how many parts."""

import sys
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
NOT_EXTRA = "not mysql97 and not tidb"
CRASH = tuple(
    f"tests/crash/test_{name}.py" for name in ("fault_matrix", "source_faults", "maintenance_kills", "sabotage")
)
LIVE_READS = ("tests/crash/test_live_reads.py",)
FOLDER = Path("var/nightly")
SEED_VARIABLE = "DMDELTA_TEST_SEED"


@dataclass(frozen=True, slots=True)
class SuiteLane:
    """A lane of pytest tests; a part has as many as fit into its time.

    Attributes:
        paths: what is collected.
        marks: pytest's expression that selects the tests.
        test_seconds: the estimate for a test without a known duration.
        options: further pytest options.
        ignored: files below `paths` that belong to another lane.
        beside: the module that starts a server or a cluster and runs the command.
        processes: of pytest-xdist; the part's time is divided by it.
        distribution: of pytest-xdist: `loadfile` runs a file's tests, which share state, in one process; `worksteal`
            gives each process half of the tests in order, and moves tests that have not started to an idle process.
        prepare: a command before the lane's first part; if it fails, the lane fails.
    """

    name: str
    paths: tuple[str, ...]
    marks: str
    test_seconds: float
    options: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    beside: str = ""
    processes: int = 1
    distribution: str = "loadfile"
    prepare: tuple[str, ...] = ()

    @property
    def selection(self) -> list[str]:
        """The arguments of pytest that collect the lane."""
        return [*self.paths, "-m", self.marks, *(f"--ignore={path}" for path in self.ignored)]

    def command(self, tests: str, seed: int) -> list[str]:
        """The command of a part; `tests` is an argument of pytest."""
        seeds = ["env", f"{SEED_VARIABLE}={seed}"]
        parallel = ["-n", str(self.processes), "--dist", self.distribution] if self.processes > 1 else []
        around = [PYTHON, "-m", self.beside] if self.beside else []
        chosen = [tests, "-m", self.marks, f"--hypothesis-seed={seed}"]
        return [*seeds, *around, PYTHON, "-m", "pytest", *chosen, *self.options, *parallel]


@dataclass(frozen=True, slots=True)
class RunLane:
    """A lane that is a program with a fixed duration.

    Attributes:
        arguments: of Python; `{seed}` and `{json}` are replaced by the part's seed and the file for its figures.
        seconds: maximum duration of a part.
        parts: number of parts, each with its own seed.
        counted: matches the figure `passed` in the output, if the program writes no file.
        tested: the folders whose tests the program runs.
    """

    name: str
    arguments: tuple[str, ...]
    seconds: float
    parts: int = 1
    counted: str = ""
    prepare: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()

    def command(self, seed: int, figures: Path) -> list[str]:
        """The command of a part."""
        return [PYTHON, *(text.format(seed=seed, json=figures) for text in self.arguments)]


Lane = SuiteLane | RunLane

LANES: tuple[Lane, ...] = (
    SuiteLane("test", ("tests",), f"{NOT_EXTRA} and not long", 4.0, processes=2),
    RunLane(
        "mutation",
        ("-m", "tests.mutation", "--mutants", "200", "--seed", "{seed}", "--json", "{json}"),
        seconds=2400.0,
        prepare=("make", "build/mutation/installed"),
        tested=("tests/unit/",),
    ),
    SuiteLane(
        "crash", CRASH, f"{NOT_EXTRA}", 60.0, options=("--timeout", "1800"), processes=2, distribution="worksteal"
    ),
    SuiteLane(
        "long",
        ("tests",),
        f"long and {NOT_EXTRA}",
        60.0,
        options=("--timeout", "1800"),
        ignored=(*CRASH, *LIVE_READS),
        processes=2,
        distribution="worksteal",
    ),
    # One test of 500 reads, which beside another process would take longer than a part.
    SuiteLane("live", LIVE_READS, f"long and {NOT_EXTRA}", 1_600.0),
    SuiteLane("tidb", ("tests",), "tidb", 20.0, prepare=(PYTHON, "-m", "tests.support.servers.tidb")),
    SuiteLane(
        "mysql97", ("tests",), "mysql97", 20.0, prepare=(PYTHON, "-m", "tests.support.servers", "install", "mysql97")
    ),
    SuiteLane(
        "connect",
        ("tests/spark", "tests/integration"),
        f"{NOT_EXTRA} and not long",
        12.0,
        beside="tests.support.connect_server",
        processes=2,
    ),
    SuiteLane(
        "cluster",
        ("tests/spark", "tests/integration"),
        f"{NOT_EXTRA} and not long",
        15.0,
        beside="tests.support.cluster",
        processes=2,
    ),
    RunLane(
        "fuzz",
        (
            *("-m", "tests.fuzz", "-max_total_time=600", "-seed={seed}"),
            *("-print_final_stats=1", "-artifact_prefix=var/nightly/"),
        ),
        seconds=780.0,
        counted=r"stat::number_of_executed_units:\s+(\d+)",
        prepare=("make", "build/fuzz/installed"),
    ),
    RunLane(
        "soak",
        ("-m", "tests.soak", "--minutes", "20", "--seed", "{seed}", "--json", "{json}"),
        seconds=2400.0,
        parts=3,
    ),
)
