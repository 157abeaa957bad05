"""Moved modules still run under their 0.1 names."""

import runpy
import sys

import pytest


@pytest.mark.parametrize(
    ("alias", "module"),
    [
        ("dmdelta.engine.figures", "dmdelta.engine.telemetry.prometheus"),
        ("dmdelta.config.reference", "dmdelta.config.docs"),
        ("dmdelta.ddl.types", "dmdelta.ddl.types.silver_types"),
    ],
)
def test_an_alias_prints_the_page_of_the_module(alias, module, capsys, monkeypatch):
    def printed(name: str) -> str:
        monkeypatch.delitem(sys.modules, name, raising=False)  # otherwise Python warns that it runs a second time
        monkeypatch.delitem(sys.modules, module, raising=False)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return capsys.readouterr().out

    page = printed(module)
    assert page.startswith("#")
    assert printed(alias) == page


def test_the_class_archive_is_made_under_its_old_name(capsys, monkeypatch, tmp_path):
    (tmp_path / "share").touch()  # no room for an archive, so no JVM starts
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delitem(sys.modules, "dmdelta.lakehouse.cds_archive", raising=False)
    runpy.run_module("dmdelta.lakehouse.class_archive", run_name="__main__")
    assert "no class archive" in capsys.readouterr().out
