"""The ends of the task's process: each must have a cause that the soak has injected, and no more often than that."""

import signal
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction

from dmdelta.engine.relay.supervisor import RESTARTS
from dmdelta.errors import EXIT_RETRIES_SPENT, LakehouseError, StageFailed
from dmdelta.failpoint import CrashPoint


class Cause(Enum):
    """Why the process has ended."""

    KILLED = "killed"
    """By the soak, or at a crash point."""
    INJECTED = "injected error"
    """An error at a crash point that the run does not retry."""
    FENCED = "fenced"
    """By a second runner, or by what a killed one has left: a relay that holds its folder, a commit of its JVM."""
    HELD = "held by a command"
    """It was started while `dmdelta maintain` or `replay` worked on its tables."""
    UNREACHABLE = "source unavailable"
    """It lost a source while it started; a run that follows its sources retries instead."""
    RELAY_LOST = "relay lost"
    """A relay ended more often than a run restarts it."""
    HUNG = "hung"
    """A stage that hung at a crash point delayed a pause for too long."""


KILL = (Cause.KILLED, Cause.FENCED)
"""The causes that a kill of the process may have: its own end, and one of the next process."""
ENDS_PER_FAULT = {Cause.HELD: Fraction(12), Cause.RELAY_LOST: Fraction(1, RESTARTS + 1)}
"""How many ends one fault explains, if not one. A command may work for two minutes, and the process, which is restarted
at once, needs ten seconds until it notices it. A run restarts each relay `RESTARTS` times."""
_TEXTS = (
    (Cause.HELD, (LakehouseError.exit_code,), "another command is working"),
    (Cause.FENCED, (LakehouseError.exit_code,), "another runner of this task"),
    (Cause.FENCED, (LakehouseError.exit_code,), "writes to this folder"),
    (Cause.INJECTED, (LakehouseError.exit_code, StageFailed.exit_code), "injected "),
    (Cause.RELAY_LOST, (StageFailed.exit_code,), "the relay of"),
    (Cause.HUNG, (StageFailed.exit_code,), "a stage does not end"),
    (Cause.HUNG, (StageFailed.exit_code,), "the checkpoint write did not end"),
)
"""The exit codes and a part of the error's message by cause."""


def plan_cause(code: int, log: str) -> Cause | None:
    """The cause of an end, by its exit code and the end of its output; None: nothing that the soak injects.

    Exit code 0 has none: the soak never asks the task to stop. Nor have other signals than SIGKILL.
    """
    if code <= 0:
        return Cause.KILLED if code == -signal.SIGKILL else None
    # Spark logs the errors of its workers; dmdelta's own is the last.
    _, found, output = log.rpartition("\nerror: ")
    message = output.partition("\n")[0]
    if not found or "Traceback" in output:
        return None
    if code == EXIT_RETRIES_SPENT:  # the run retries an injected error of this kind
        return None if "injected " in message else Cause.UNREACHABLE
    return next((cause for cause, codes, text in _TEXTS if code in codes and text in message), None)


def plan_failpoint(point: CrashPoint, fault: str) -> tuple[Cause, ...]:
    """The causes of an end that a fault at a crash point may have. A run retries the errors that are not listed."""
    of_relay = point.name.startswith("RELAY")
    if fault == "kill":
        return (Cause.RELAY_LOST,) if of_relay else KILL
    if fault == "hang":
        return (Cause.HUNG,)
    if fault in ("error:LakehouseError", "error:ENOSPC", "error:EACCES"):
        return (Cause.INJECTED, Cause.RELAY_LOST) if of_relay else (Cause.INJECTED,)
    return ()


def unexplained_ends(ended: Mapping[Cause, int], injected: Mapping[Cause, int]) -> list[str]:
    """The causes of more ends than the injected faults explain. Fewer are normal: a fault may hit a process that ends."""
    allowed = {cause: int(injected.get(cause, 0) * ENDS_PER_FAULT.get(cause, Fraction(1))) for cause in Cause}
    counts = {cause: ended.get(cause, 0) for cause in Cause}
    return [
        f"{cause.value}: {counts[cause]} ends, of which the injected faults explain {most}"
        for cause, most in allowed.items()
        if counts[cause] > most
    ]


def by_cause(ended: Mapping[Cause, int]) -> "Counter[str]":
    """The numbers of ends by the name of their cause."""
    return Counter({cause.value: count for cause, count in ended.items()})
