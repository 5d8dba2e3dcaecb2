"""A generation made with ``trnspec plugin new`` and installed beside the wheel, outside the repository; and gone again."""

import json

import pytest

from tests.support.programs import Elsewhere, with_pytest

pytestmark = pytest.mark.slow

ASKED = (
    ("plugin", "list"),
    ("list",),
    ("list", "chips"),
    ("list", "servers"),
    ("list", "ultraservers"),
    ("validate",),
    ("query", "chip where memory.capacity > 1 GiB"),
    ("query", "ultraserver where memory.capacity >= 2 TiB"),
    ("compare", "trainium1", "trainium2"),
    ("show", "trainium2"),
    ("eval", "training", "--model", "llama-3.1-8b", "--on", "trn1.32xlarge*2", "--tp", "8", "--zero", "1",
     "--seq", "2048", "--global-batch", "32", "--format", "json"),
)  # fmt: skip
"""What is asked before and after: the answers must be the same."""


@pytest.fixture(scope="module")
def elsewhere() -> Elsewhere:
    return with_pytest()


def answers(elsewhere: Elsewhere) -> dict[tuple[str, ...], str]:
    return {args: elsewhere.trnspec(*args) for args in ASKED}


def rows(text: str) -> list[str]:
    return [row["name"] for row in json.loads(text)["rows"]]


def test_plugin_generation_installed_and_removed(elsewhere: Elsewhere) -> None:
    """It is listed, valid, found by queries, compared, shown, evaluated and tested; then nothing of it is left."""
    before, files = answers(elsewhere), elsewhere.files()
    elsewhere.trnspec("plugin", "new", "acme-tpu")
    made = elsewhere.folder / "trnspec-acme-tpu"
    elsewhere.pip("install", made)
    record = json.loads(elsewhere.trnspec("plugin", "list", "--format", "json"))["plugins"]

    # Nothing of the checkout is seen: trnspec itself is the wheel.
    probe = "import trnspec.loading.files as c, trnspec_acme_tpu as a; print(c.__file__); print(c.shipped()); print(a.__file__)"
    assert all(
        line.startswith(f"{elsewhere.folder}/env/")
        for line in elsewhere.reported(elsewhere.python, "-c", probe).split()
    )
    assert [("acme-tpu", "trnspec-acme-tpu", "ok", "")] == [
        (r["name"], r["distribution"], r["status"], r["message"]) for r in record
    ]
    for kind, name in (
        ("chips", "acme-tpu-1"),
        ("servers", "acme-tpu-1-server"),
        ("ultraservers", "acme-tpu-1-ultraserver"),
    ):
        assert name in rows(elsewhere.trnspec("list", kind, "--format", "json"))
    assert ", no findings." in elsewhere.trnspec("validate")
    assert "4 documents checked, no findings." in elsewhere.trnspec("validate", str(made / "src"))
    assert ["acme-tpu-1"] == rows(elsewhere.trnspec("query", "chip where memory.capacity = 64 GiB", "--format", "json"))
    # A total over 4 x 8 chips.
    asked = "ultraserver where memory.capacity = 2,048 GiB"
    assert ["acme-tpu-1-ultraserver"] == rows(elsewhere.trnspec("query", asked, "--format", "json"))
    compared = elsewhere.trnspec("compare", "acme-tpu-1", "trainium2").splitlines()
    assert ["bf16", "[TFLOPS]", "400", "667", "1.67x"] in [line.split() for line in compared]
    assert elsewhere.trnspec("show", "acme-tpu-1").startswith("acme-tpu-1: acme-tpu 1 (Chip)\n")
    # Its chip is evaluated like any other: at 400 TFLOPS no step of it is faster than its work.
    asked = ("training", "--model", "gpt2", "--on", "acme-tpu-1", "--seq", "1024", "--global-batch", "8")
    reported = {a["name"]: a for a in json.loads(elsewhere.trnspec("eval", *asked, "--format", "json"))["answers"]}
    assert reported["step_time"]["value"] >= reported["work"]["value"] / 400e12 > 0.0
    assert (64 * 2**30, True) == (reported["capacity"]["value"], reported["fits"]["value"])
    # A mistake in it is found beside the wheel as anywhere.
    server = made / "src/trnspec_acme_tpu/catalog/servers/acme-tpu-1-server.yaml"
    sound = server.read_text()
    server.write_text(sound.replace("512 GiB", "500 GiB"))
    done = elsewhere.run(elsewhere.python, "-m", "trnspec", "validate", server)
    assert (1, True) == (done.returncode, "TRN402 aggregate-mismatch" in done.stdout)
    # Its own tests, to which its documents belong; the one with the mistake fails.
    tested = elsewhere.run(elsewhere.python, "-m", "pytest", "-q", "-W", "error", cwd=made)
    assert (1, True) == (tested.returncode, "TRN402 aggregate-mismatch" in tested.stdout)
    assert "acme-tpu-1-server.yaml::trnspec" in tested.stdout
    server.write_text(sound)
    assert (
        " passed"
        in elsewhere.reported(elsewhere.python, "-m", "pytest", "-q", "-W", "error", cwd=made).splitlines()[-1]
    )

    elsewhere.pip("uninstall", "--yes", "trnspec-acme-tpu")

    assert before == answers(elsewhere)
    assert files == elsewhere.files()
    assert [] == [f for f in (elsewhere.folder / "env").rglob("*") if "acme" in f.name]


def test_the_plugin_of_pytest_is_installed(elsewhere: Elsewhere) -> None:
    folder = elsewhere.folder / "checked"
    folder.mkdir()
    page = "api_version: trnspec/v1\nkind: Source\nmetadata: {name: a, title: A}\nspec: {publisher: A, as_of: 2026-01, rank: third-party}\n"
    (folder / "a.yaml").write_text(page)

    assert 5 == elsewhere.run(elsewhere.python, "-m", "pytest", cwd=folder).returncode
    assert "1 passed" in elsewhere.reported(
        elsewhere.python, "-m", "pytest", "-W", "error", "--trnspec", ".", cwd=folder
    )
