"""trnspec.plugins.entry_points: the installed plugins, and their import within a time limit."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from tests.support.programs import Site
from trnspec.plugins.entry_points import distribution, imported, installed


def test_distributions_of_installed_plugins(tmp_path, monkeypatch) -> None:
    site = Site(tmp_path)
    for name in ("one", "two"):
        site.plugin(name)
    (tmp_path / "trnspec_two-1.0.dist-info" / "METADATA").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    found = {e.name: distribution(e) for e in installed()}

    assert {"one": ("trnspec-one", "1.0"), "two": ("", "")} == {name: found[name] for name in ("one", "two")}


def test_slow_imports_are_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in {"entry_a": "x = 1", "entry_b": "import time; time.sleep(600)", "entry_c": "x = 3"}.items():
        (tmp_path / f"{name}.py").write_text(code)
    found = [imported(EntryPoint(n, f"entry_{n}:x", "g"), 0.5) for n in "abcb"]

    assert [(1, False), (None, True), (3, False), (None, True)] == [(o.value, o.is_late) for o in found]
