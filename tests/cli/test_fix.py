"""``trnspec fix`` and ``trnspec baseline``: findings that are corrected, and findings that are accepted."""

import json

import pytest

from tests.support.programs import Here, git, written

HEAD = "api_version: trnspec/v1\nkind: Chip\nmetadata: {name: acme, title: Acme}\n"
WAIVED = HEAD.replace("title: Acme}", "title: Acme, allow: [{code: TRN301, reason: ours}]}")


@pytest.fixture
def here(here) -> Here:
    (here.folder / "chips").mkdir()
    return here


def fixed(here: Here, text: str) -> tuple[str, list[str]]:
    """The text after the fixes, and their codes."""
    file = here.folder / "chips" / "acme.yaml"
    file.write_text(text)
    done = here("fix", "chips/acme.yaml")
    return file.read_text(), [line.split()[2] for line in done.out.splitlines() if ": fixed " in line]


BEFORE = """\
  dies: 2
  peak:
    dense: {bf16: '9 Tflops', fp8: "18 TFLOPS"}  # of the tensor engines
    sparse: {"bf15": 1 TFLOPS}
  memory: {capcity: 8 GIB, bandwith: 4,800 GB/s}
  dma: {bandwidth: 4,800 GB/s, engnes: 16}
  # Two meanings, no unit, a key that is there already; and above, engines or host_engines.
  sbuf: 8 Gb
  power: 8 parsecs
  cc_cores: {usable: 16, usabel: 20}
  wings: 2
"""
AFTER = """\
  dies: 2
  peak:
    dense: {bf16: '9 TFLOPS', fp8: "18 TFLOPS"}  # of the tensor engines
    sparse: {"bf15": 1 TFLOPS}
  memory: {capacity: 8 GiB, bandwidth: "4,800 GB/s"}
  dma: {bandwidth: "4,800 GB/s", engnes: 16}
  # Two meanings, no unit, a key that is there already; and above, engines or host_engines.
  sbuf: 8 Gb
  power: 8 parsecs
  cc_cores: {usable: 16, usabel: 20}
  wings: 2
"""


def test_hints_of_the_form(here) -> None:
    """What has one correction is corrected, also where a correction reveals it; the rest stays as it is."""
    codes = ["TRN101", "TRN102", "TRN111", "TRN111", "TRN113", "TRN113"]
    text, applied = fixed(here, f"{WAIVED}spec:\n{BEFORE}")

    assert f"{WAIVED}spec:\n{AFTER}" == text
    assert codes == sorted(applied)


IDLE = "{code: TRN402, reason: old}"
KEPT = "{code: TRN301, reason: ours}"
WAIVERS = [
    ("  allow:\n    - code: TRN402\n      reason: old\n", ""),
    (f"  allow:\n    - {IDLE}\n    # ours\n    - {KEPT}\n", f"  allow:\n    # ours\n    - {KEPT}\n"),
    (f"  allow:\n    - {KEPT}\n    - code: TRN402\n      reason: >-\n        a\n", f"  allow:\n    - {KEPT}\n"),
    (f"  allow: [{IDLE}, {KEPT}]\n", f"  allow: [{KEPT}]\n"),
    (f"  allow: [{KEPT}, {IDLE}]\n", f"  allow: [{KEPT}]\n"),
    # A comment may say more than the waiver, and the rule of an unknown code may be that of a plugin.
    (f"  allow:\n    - {IDLE}  # x\n    - {KEPT}\n", f"  allow:\n    - {IDLE}  # x\n    - {KEPT}\n"),
    ("  allow: [{code: ACME123, reason: x}]\n",) * 2,
]


def test_idle_waivers(here) -> None:
    def text(number: int, waivers: str) -> str:
        name = f"metadata:\n  name: acme-{number}\n  title: Acme\n"
        return f"api_version: trnspec/v1\nkind: Chip\n{name}{waivers}spec: {{memory: {{capacity: 8 GiB}}}}\n"

    files = [here.folder / "chips" / f"acme-{number}.yaml" for number in range(len(WAIVERS))]
    for number, (before, _) in enumerate(WAIVERS):
        files[number].write_text(text(number, before))
    here("fix", "chips")

    assert [text(number, after) for number, (_, after) in enumerate(WAIVERS)] == [file.read_text() for file in files]


def test_baseline(here) -> None:
    """Lines may change; a second finding of the same place is new; what was corrected is listed."""
    file = here.folder / "chips" / "acme.yaml"
    file.write_text(f"{WAIVED}spec: {{memory: {{capacity: 8 GiB}}, power: 1 parsec, dma: {{engnes: 4}}}}\n")

    assert "base.json: 2 findings accepted\n" == here("baseline", "base.json", "chips").out
    assert [
        {"code": "TRN101", "document": "Chip/acme", "path": "spec.dma.engnes"},
        {"code": "TRN111", "document": "Chip/acme", "path": "spec.power"},
    ] == json.loads((here.folder / "base.json").read_text())["findings"]

    file.write_text("# A comment.\n\n" + file.read_text())
    same = here("validate", "--baseline", "base.json", "chips")

    assert (0, "1 document checked, no findings, 1 waived, 2 accepted.\n", "") == (same.status, same.out, same.err)

    file.write_text(file.read_text().replace("engnes: 4", "bandwidth: 1 parsec"))
    new = here("validate", "--baseline", "base.json", "--format", "json", "chips")

    assert 1 == new.status
    assert ["TRN111"] == [d["code"] for d in new.data["diagnostics"]]
    assert "no longer occurs: TRN101 of Chip/acme at spec.dma.engnes" == new.err.splitlines()[0]


def test_files_of_other_programs_are_skipped(here) -> None:
    written(here.folder / "models" / "schema.yml", "version: 2\nmodels: []\n")
    (here.folder / "chips" / "acme.yaml").write_text(f"{WAIVED}spec: {{memory: {{capacity: 8 GiB}}}}\n")

    assert 1 == here("validate", "models/schema.yml").status
    assert (0, "") == ((alone := here("validate", "--skip-others", "models/schema.yml")).status, alone.out)
    assert here("validate", "--skip-others", ".").out.startswith("1 document checked, no findings")


@pytest.mark.parametrize("version", ["", "api_version: trnspek/v1\n", "apiversion: trnspec/v1\n"])
def test_the_hook_checks_a_document_with_a_wrong_version(here, version) -> None:
    """It would pass a wrong key otherwise."""
    text = f"{WAIVED}spec: {{memory: {{capcity: 8 GiB}}}}\n"
    (here.folder / "chips" / "acme.yaml").write_text(version + text.split("\n", 1)[1])
    done = here("validate", "--skip-others", "--format", "json", "chips/acme.yaml")

    assert 1 == done.status
    assert {d["code"] for d in done.data["diagnostics"]} & {"TRN101", "TRN102", "TRN107", "TRN108"}


def test_a_missing_source_is_written_to_be_filled_in(here) -> None:
    """It is invalid until then, and is not written twice; a name that may be misspelt gets none."""
    text = HEAD.replace("title: Acme}", "title: Acme, source: acme-page-2026-10}")
    file = here.folder / "chips" / "acme.yaml"
    file.write_text(f"{text}spec: {{memory: {{capacity: {{value: 8 GiB, source: neuron-trn1-2023-0}}}}, dies: 2}}\n")
    stub = here.folder / "sources" / "acme-page-2026-10.yaml"

    shown = here("fix", "--diff", "chips")

    assert (1, "--- /dev/null", False) == (shown.status, shown.out.splitlines()[0], stub.exists())

    done = here("fix", "chips")

    assert 1 == done.status
    assert "sources/acme-page-2026-10.yaml: new, to be filled in" in done.out
    assert ["acme-page-2026-10.yaml"] == [f.name for f in stub.parent.iterdir()]
    assert {"TRN103", "TRN104"} == codes(here, "sources")
    assert {"TRN103", "TRN104", "TRN201"} == codes(here, "chips", "sources")

    before = stub.read_bytes()
    assert 1 == here("fix", "chips").status
    assert before == stub.read_bytes()


def codes(here: Here, *paths: str) -> set[str]:
    return {d["code"] for d in here("validate", "--format", "json", *paths).data["diagnostics"]}


def test_a_source_that_is_filled_in_is_valid(here) -> None:
    file = here.folder / "chips" / "acme.yaml"
    file.write_text(
        HEAD.replace("title: Acme}", "title: Acme, source: acme-page}") + "spec: {memory: {capacity: 8 GiB}}\n"
    )
    here("fix", "chips")
    stub = here.folder / "sources" / "acme-page.yaml"
    values = {"title": "A page", "publisher": "Acme", "as_of": "2026-10", "rank": "vendor-chip-page"}
    values["address"] = "https://example.com/page"
    text = stub.read_text()
    for key, value in values.items():
        text = text.replace(f"{key}:  #", f"{key}: {value}  #")
    stub.write_text(text)

    assert set() == codes(here, "chips", "sources")


PRICE = """\
api_version: trnspec/v1
kind: Price
metadata: {{name: trn1.2xlarge-{type}, title: "{title}", source: skypilot-catalog-00148f2}}
spec:
  server: trn1.2xlarge
  type: {type}
  hourly: {{us-east-2: {price} USD/h}}
"""


@pytest.fixture
def prices(here):
    """A git repository with two documents of prices."""
    folder = here.folder / "prices"
    folder.mkdir()
    for type_, price in (("on-demand", "1.34375"), ("spot", "0.154")):
        title = f"trn1.2xlarge, {type_.replace('-', ' ')}"
        (folder / f"trn1.2xlarge-{type_}.yaml").write_text(PRICE.format(type=type_, price=price, title=title))
    git(here.folder, "init", "-q")
    git(here.folder, "add", ".")
    git(here.folder, "commit", "-qm", "prices")
    return folder


def test_prices_of_a_server_become_a_list(here, prices) -> None:
    shown = here("fix", "--diff", "prices")
    done = here("fix", "prices")
    (file,) = prices.iterdir()

    assert (1, 2) == (shown.status, shown.out.count("+++ /dev/null"))
    assert (0, "") == (done.status, done.err)
    assert file.name == "trn1.2xlarge-prices.yaml"
    assert file.read_text().splitlines()[-2:] == [
        "    - {type: on-demand, region: us-east-2, price: 1.34375 USD/h, source: skypilot-catalog-00148f2}",
        "    - {type: spot, region: us-east-2, price: 0.154 USD/h, source: skypilot-catalog-00148f2}",
    ]
    assert here("fix", "--check", "prices").status == 0


@pytest.mark.parametrize(
    ("text", "committed"),
    [
        ("", False),  # git cannot restore what is not committed
        ("# A comment of the author.\n", True),
        (
            "claims:\n  - {at: spec.note, says: a, source: skypilot-catalog-00148f2, verdict: rejected, reason: No.}\n",
            True,
        ),
    ],
)
def test_prices_that_a_list_cannot_have_stay(here, prices, text, committed) -> None:
    file = prices / "trn1.2xlarge-spot.yaml"
    file.write_text(file.read_text() + (text or "\n"))
    if committed:
        git(here.folder, "commit", "-qam", "prices")
    before = {f.name: f.read_text() for f in prices.iterdir()}

    here("fix", "prices")

    assert {f.name: f.read_text() for f in prices.iterdir()} == before


def test_one_file_of_a_server_stays(here, prices) -> None:
    here("fix", "prices/trn1.2xlarge-spot.yaml")

    assert len(list(prices.iterdir())) == 2
