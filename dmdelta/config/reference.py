"""`python -m dmdelta.config.reference`: now `dmdelta.config.docs`; the old name is removed in 0.3."""

import runpy

if __name__ == "__main__":
    runpy.run_module("dmdelta.config.docs", run_name="__main__")
