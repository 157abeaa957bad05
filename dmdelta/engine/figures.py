"""`python -m dmdelta.engine.figures`: now `dmdelta.engine.telemetry.prometheus`; the old name is removed in 0.3."""

import runpy

if __name__ == "__main__":
    runpy.run_module("dmdelta.engine.telemetry.prometheus", run_name="__main__")
