"""JVM options of the tests, and the environment of a child with a JVM of its own."""

import os
import tempfile

_FAST = "-XX:TieredStopAtLevel=1 -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""For few rows, neither Java's C2 compiler nor generated code pays off: without them, tests use a quarter less CPU."""
_ERROR_FILE = f"-XX:ErrorFile={tempfile.gettempdir()}/hs_err_pid%p.log"
"""By default a JVM that crashes writes this file into the current folder, the checkout."""
JVM_OPTIONS = f"{_FAST} {_ERROR_FILE}"


def local_environment() -> dict[str, str]:
    """This process's environment without Spark's variables: a child starts Spark as on a user's machine."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
