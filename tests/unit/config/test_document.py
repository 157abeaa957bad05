"""Malicious YAML, and passwords that are not valid YAML."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.config import load_spec
from dmdelta.config.document import MOST_VALUES, read_document
from dmdelta.config.loading import load_suite
from dmdelta.errors import ConfigError
from dmdelta.model.tls import password_bytes

SECRET = "hunter2-XyZ"
SPEC = """\
name: shop
sources:
  - source-id: one
    host: db.example
    user: dmdelta
    password: {password}
lakehouse: {{root: lake}}
"""
LAUGHS = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60))


def refused(path, text):
    """The error that a spec and a suite with this text raise, including everything that --debug would show."""
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ConfigError) as caught:
        load_spec(path, {})
    shown = "".join(traceback.format_exception(caught.value))
    return f"{caught.value.message}\n{caught.value.hint}\n{shown}"


@pytest.mark.parametrize("load", [load_spec, load_suite])
@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/object/new:subprocess.Popen",
        "!!python/name:os.system",
        "!!python/module:os",
        "!mine",
    ],
)
def test_a_tag_constructs_nothing(tmp_path, load, tag):
    """A file with a tag that would make Python execute code is refused; nothing is executed."""
    traces = tmp_path / "ran"
    path = tmp_path / "task.yml"
    path.write_text(f"name: x\nsources: {tag} ['touch {traces}']\n")
    with pytest.raises(ConfigError, match=r"task\.yml:2: unsupported tag \(!\)"):
        load(path)
    assert not traces.exists()


@pytest.mark.parametrize(
    "text",
    [LAUGHS, MERGES, "a: &a [*a]\n", "a: &a {b: *a}\n", "a: &a\n  <<: *a\n"],
    ids=["laughs", "merges", "list", "map", "merge"],
)
def test_aliases_cannot_expand_without_limit(tmp_path, text):
    """Neither 2^60 values nor a value that contains itself; the error names the file."""
    assert "task.yml: its aliases" in refused(tmp_path / "task.yml", text)


@pytest.mark.parametrize(("extra", "fits"), [("", True), ("c", False)])
def test_a_file_may_have_as_many_values_as_the_limit(tmp_path, extra, fits):
    """Keys, lists and mappings count as values, an alias as often as it is used."""
    path = tmp_path / "task.yml"
    ones, uses = 640, 155
    path.write_text(f"a: &a [{'1,' * ones}]\nb: [{'*a,' * uses}{extra}]\n")
    assert 1 + (1 + 1 + ones) + (1 + 1 + uses * (1 + ones)) == MOST_VALUES
    if fits:
        assert len(read_document(path).values["b"]) == uses
    else:
        with pytest.raises(ConfigError, match=r"more than 100,000 values"):
            read_document(path)


def test_a_file_nested_too_deeply_is_refused(tmp_path):
    """With an error instead of a stack overflow."""
    assert "too many nested brackets" in refused(tmp_path / "task.yml", "a: " + "[" * 20_000)


@pytest.mark.parametrize(
    "password",
    [
        f"*{SECRET}",
        f"!{SECRET} x",
        f"!<tag:{SECRET}> x",
        f"%{SECRET}",
        f"@{SECRET}",
        f"`{SECRET}",
        f"{{{SECRET}",
        f"[{SECRET}",
        f"[{SECRET}]",
        f"{{{SECRET}: 1}}",
        f"'{SECRET}",
        f'"{SECRET}\\q"',
        f"{SECRET}: x",
        f"&{SECRET} 1\n    user: &{SECRET} 2",
        f"!!int {SECRET}",
        f"!!float {SECRET}",
        f"!!bool {SECRET}",
        f"!!timestamp {SECRET}",
        f"x\n    password:{SECRET}: y",
        f"x\n    port: {{password:{SECRET}, password:{SECRET}}}",
        f'"{SECRET}\\uD800"',
    ],
)
def test_an_error_does_not_repeat_a_password(tmp_path, password):
    """The error names the position but not the content, whatever the mistake; neither does --debug."""
    said = refused(tmp_path / "task.yml", SPEC.format(password=password))
    assert SECRET not in said
    assert "task.yml:" in said


@pytest.mark.parametrize(("written", "line"), [("2001-99-99", 6), ("0x", None), ("12:99:99", None), ("7", 6)])
def test_an_invalid_value_is_reported_with_its_line(tmp_path, written, line):
    """Regression: an invalid date raised a traceback."""
    path = tmp_path / "task.yml"
    if line is None:
        read_document_of(path, written)
    else:
        assert f"task.yml:{line}: " in refused(path, SPEC.format(password=written))


def read_document_of(path, password):
    path.write_text(SPEC.format(password=password))
    return read_document(path)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_a_password_from_the_environment_is_unchanged(tmp_path_factory, password):
    """Quotes, references, line breaks: a variable's value is never parsed as YAML."""
    path = tmp_path_factory.mktemp("any") / "task.yml"
    path.write_text(SPEC.format(password="${PASSWORD}"))
    spec = load_spec(path, {"PASSWORD": password})
    (source,) = spec.sources
    assert source.password.get_secret_value() == password
    assert spec.variables_of_passwords == {"PASSWORD"}
    assert password_bytes(password) == password.encode()


def test_non_utf8_bytes_of_the_environment_are_kept(tmp_path):
    """As Python decodes them: a server's password can be Latin-1."""
    assert password_bytes(b"p\xe4ss".decode("utf-8", "surrogateescape")) == b"p\xe4ss"
