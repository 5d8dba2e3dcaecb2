"""The options that choose a catalog, the same for every command that asks."""

import pytest

OVERLAY = """
change:
  trainium2: {memory.capacity: 128 GiB}
add:
  - api_version: trnspec/v1
    kind: Server
    metadata: {name: mine.8xlarge, title: My own server}
    spec: {chips: {chip: trainium2, count: 8}}
"""


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["show", "mine.8xlarge"], "1,024 GiB"),
        (["compare", "trainium2", "mine.8xlarge"], "128         1,024     8x"),
        (["list", "servers"], "mine.8xlarge"),
        (["tree", "mine.8xlarge"], "8 x trainium2: bf16 667 TFLOPS, 128 GiB"),
    ],
)
def test_overlay(here, args, text) -> None:
    (here.folder / "my.yaml").write_text(OVERLAY)

    assert text in here(*args, "--overlay", "my.yaml").out
    assert text not in here(*args).out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--catalog", "nowhere"], "nowhere does not exist"),
        (["--overlay", "nowhere.yaml"], "nowhere.yaml"),
        (["--edition", "1999.01"], "1999.01"),
        (["--as-of", "soon"], "soon"),
    ],
)
def test_misuse(here, args, message) -> None:
    for command in (["show", "trainium1"], ["list"], ["source"], ["tree", "trainium1"]):
        result = here(*command, *args)

        assert (result.status, result.out) == (2, "")
        assert message in result.err
