"""`python -m dmdelta.lakehouse.class_archive`: now `dmdelta.lakehouse.cds_archive`; the old name is removed in 0.3."""

import runpy

if __name__ == "__main__":
    runpy.run_module("dmdelta.lakehouse.cds_archive", run_name="__main__")
