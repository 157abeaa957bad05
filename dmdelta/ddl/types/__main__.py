"""`python -m dmdelta.ddl.types`: now `dmdelta.ddl.types.silver_types`; the old name is removed in 0.3."""

import runpy

if __name__ == "__main__":
    runpy.run_module("dmdelta.ddl.types.silver_types", run_name="__main__")
