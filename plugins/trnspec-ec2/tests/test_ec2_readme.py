"""The commands of the README, run in processes of their own with the plugin installed; they print what it shows."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from ec2_world import DATA, FILE, Site, record

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def site(tmp_path) -> Site:
    made = Site(tmp_path / "site")
    shutil.copytree(DATA, tmp_path / "work" / "tests" / "data")
    return made


def shown() -> list[tuple[list[str], str]]:
    """Each command of the README with what it shows below it."""
    found: list[tuple[list[str], str]] = []
    for block in README.split("\n    $ ")[1:]:
        command, _, rest = block.partition("\n")
        lines: list[str] = []
        for line in rest.splitlines():
            if line and not line.startswith("    "):
                break
            lines.append(line.removeprefix("    "))
        found.append((shlex.split(command), "\n".join(lines).strip() + "\n"))
    return found


def test_the_readme_shows_what_is_printed(site) -> None:
    work = site.folder.parent / "work"
    wrong = record("trn1.2xlarge")
    wrong["VCpuInfo"]["DefaultVCpus"] = "8"
    seen = []
    for command, output in shown():
        if command[0] == "cat":
            assert output == (work / command[1]).read_text()
        else:
            stdin = json.dumps({"InstanceTypes": [wrong]}).encode()
            done = site.run(*command[1:], stdin=stdin, cwd=work)
            assert output == done.out + done.err
            seen.append((command[2], done.status))
    assert [("audit", 0), ("audit", 2), ("import", 0)] == seen
    assert 0 == site.run("validate", "drafts", cwd=work).status


def test_as_a_pipe_of_the_aws_command_line(site) -> None:
    done = site.run("ec2", "audit", "-", "--new", stdin=FILE.read_bytes())

    assert (0, "") == (done.status, done.err)
    assert "Types of the catalog whose record lists no accelerator:" in done.out


def test_the_command_is_in_the_help(site) -> None:
    done = site.run("--help")

    assert (0, "") == (done.status, done.err)
    assert "ec2 Check EC2 DescribeInstanceTypes against the catalog; draft documents." in " ".join(done.out.split())
    assert "audit" in site.run("ec2", "--help").out


def test_the_plugin_is_used(site) -> None:
    records = json.loads(site.run("plugin", "list", "--format", "json").out)["plugins"]

    assert [("ec2", "ok", "")] == [(r["name"], r["status"], r["message"]) for r in records if r["name"] == "ec2"]


def test_unencodable_letter_is_escaped(site) -> None:
    """A letter that the terminal cannot show gets its number."""
    one = record("trn2.48xlarge")
    one["InstanceType"] = "new.xlarge"
    one["NeuronInfo"]["NeuronDevices"][0]["Name"] = "Träinium"
    done = site.run("ec2", "audit", "-", stdin=json.dumps([one]).encode())

    assert (0, "") == (done.status, done.err)
    assert "the catalog lacks 1 type with accelerators." in done.out
