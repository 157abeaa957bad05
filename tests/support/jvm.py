"""How the tests' JVMs are started."""

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""A handful of rows is worth neither Java's second compiler nor generated code: a quarter less CPU without them."""
