"""The notebooks of the manual run, from the first cell to the last, and what they show is markup."""

import os

import pytest

import trnspec
from tests.support.programs import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_runs(file, tmp_path, monkeypatch) -> None:
    """Each cell that ends with an expression shows HTML, or a picture."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    book = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()

    shown = [
        output["data"] for cell in book.cells if cell.cell_type == "code" for output in cell.outputs if "data" in output
    ]
    assert len(shown) >= 5
    assert all(
        {"text/html", "image/svg+xml"} & set(data) or "DataFrame" in data["text/plain"] or "(" in data["text/plain"]
        for data in shown
    )


@pytest.fixture(scope="module")
def catalog() -> trnspec.Catalog:
    return trnspec.load()


def shown(catalog: trnspec.Catalog) -> dict[str, object]:
    chip = catalog.chips["trainium2"]
    return {
        "catalog": catalog,
        "view": chip,
        "server": catalog["trn2.48xlarge"],
        "figure": chip.figure("memory.bandwidth"),
        "result": catalog.query("chip where memory.capacity > 90 GiB"),
        "evaluation": trnspec.evaluate("roofline", catalog, on="trainium2", intensity=100),
        "sweep": trnspec.sweep("roofline", catalog, on="trainium2", intensity=[100, 200]),
    }


def test_objects_show_html_and_markdown(catalog: trnspec.Catalog) -> None:
    """With the same numbers as the text."""
    expected = {
        "catalog": f"{len(catalog)} documents", "view": "96 GiB", "server": "1,536 GiB", "figure": "2.9 TB/sec",
        "result": "144 GiB", "evaluation": "290 TFLOP/s", "sweep": "200",
    }  # fmt: skip
    for name, thing in shown(catalog).items():
        html, markdown = thing._repr_html_(), thing._repr_markdown_()  # type: ignore[attr-defined]
        assert expected[name] in html
        assert expected[name] in markdown
        assert html.count("<table>") == html.count("</table>") > 0
        assert "| ---" in markdown or "\n- " in markdown
