"""JVM options of the tests."""

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""For few rows, neither Java's C2 compiler nor generated code pays off: without them, tests use a quarter less CPU."""
