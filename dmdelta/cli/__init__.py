"""The command line: one module a command; each loads the spec, calls the engine and renders what comes back.

Owns the words on the screen, `--json` and the exit codes. Knows only the engine and the spec, and imports Spark inside
a command, so that help and spec errors are there at once.
"""
