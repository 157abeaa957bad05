"""JVM options of the tests, and the environment of a child with a JVM of its own."""

import os
import tempfile

_FEW_ROWS = "-Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""For few rows, compiling generated code does not pay off."""
_ERROR_FILE = f"-XX:ErrorFile={tempfile.gettempdir()}/hs_err_pid%p.log"
"""By default a JVM that crashes writes this file into the current folder, the checkout."""
LONG_LIVED = f"{_FEW_ROWS} {_ERROR_FILE}"
"""A JVM that works for more than five minutes: from then on, code that Java's C2 compiler has optimized takes nearly a
quarter less CPU, which by then has earned what the compiler took."""
JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 {LONG_LIVED}"
"""Any other JVM: without C2, the first test with Spark takes 40 instead of 58 s of CPU on a slow machine."""


def local_environment() -> dict[str, str]:
    """This process's environment without Spark's variables: a child starts Spark as on a user's machine."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
