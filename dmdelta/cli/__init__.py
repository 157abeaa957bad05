"""The command line: one module per command; each loads the spec, calls the engine and renders the result.

Owns the terminal output, `--json` and the exit codes. Knows only the engine and the spec, and imports Spark inside
a command, so that help and spec errors appear immediately.
"""

import os

# pydantic looks for plugins in the metadata of every installed package. dmdelta has none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
