"""Fuzzes the codec with atheris, guided by coverage: `make fuzz SECONDS=600`.

Input: a transaction of the recorded binlogs and the damage done to it. An error that is not a
DmdeltaError, a hang, or memory above the limit ends the run with status 77 and stores the input in a file.
"""

import sys
from contextlib import suppress

import atheris

with atheris.instrument_imports(include=["dmdelta"]):
    from dmdelta.errors import DmdeltaError
    from tests.support.wounds import Act, Wound, read_every_way, seeds, wounded

ACTS = tuple(Act)
MOST_WOUNDS = 4
LIMITS = ("-timeout=120", "-rss_limit_mb=1500", "-malloc_limit_mb=1000", "-max_len=256", "-len_control=0")
"""Wall-clock seconds per input, generous for a busy machine; total megabytes, and megabytes of one allocation."""


def test_one_input(data: bytes) -> None:
    given = atheris.FuzzedDataProvider(data)
    seed = seeds()[given.ConsumeIntInRange(0, len(seeds()) - 1)]
    wounds = [
        Wound(
            given.ConsumeIntInRange(0, 255),
            ACTS[given.ConsumeIntInRange(0, len(ACTS) - 1)],
            given.ConsumeIntInRange(0, 0xFFFF),
            given.ConsumeBytes(given.ConsumeIntInRange(1, 8)),
        )
        for _ in range(given.ConsumeIntInRange(1, MOST_WOUNDS))
    ]
    with suppress(DmdeltaError):
        read_every_way(wounded(seed, wounds))


if __name__ == "__main__":
    seeds()
    atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[1:]], test_one_input)
    atheris.Fuzz()
