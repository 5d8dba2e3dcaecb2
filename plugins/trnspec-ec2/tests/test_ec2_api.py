"""Asked of an API: real boto3 against moto, in the process and over the wire."""

from __future__ import annotations

import json
import sys

import pytest
from ec2_world import run
from moto import mock_aws
from moto.server import ThreadedMotoServer
from trnspec_ec2.fetching import fetch

from trnspec.errors import UsageError

REGION = ("--region", "us-east-1")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def server():
    """Moto on the loopback: boto3 sends and parses real requests and answers."""
    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    yield f"http://{host}:{port}"
    made.stop()


@pytest.mark.slow
def test_over_the_wire(server) -> None:
    done = run("audit", *REGION, "--endpoint-url", server, "--type", "trn1.32xlarge", "--format", "json")
    data = json.loads(done.out)

    assert (0, "", []) == (done.status, done.err, data["contradictions"])
    assert {"vcpus", "threads", "host-memory", "ebs", "local-storage", "efa", "cards", "performance", "clock"} <= {
        a["attribute"] for a in data["agreements"]
    }
    assert ("EC2 in us-east-1", 10) == (data["records"]["from"], len(data["records"]["as_of"]))


@pytest.mark.slow
def test_all_types_in_the_process() -> None:
    """The memory of a Trainium2 among them, which the API has wrong."""
    with mock_aws():
        done = run("audit", *REGION, "--format", "json")
    data = json.loads(done.out)
    found = {(c["type"], c["attribute"]): c for c in data["contradictions"]}
    memory = found["trn2.48xlarge", "device-memory"]

    assert (0, "") == (done.status, done.err)
    assert data["others"] > 1000
    assert {"trn1.2xlarge", "trn1.32xlarge", "trn2.48xlarge"} <= {a["type"] for a in data["agreements"]}
    assert ("524,288 MiB", "96 GiB", "rejected") == (
        memory["record"]["says"],
        memory["catalog"]["says"],
        memory["known"]["verdict"],
    )
    assert "512 GiB is the memory of 16 chips of 32 GiB, trainium1: trn1.32xlarge" == memory["causes"][0]["sentence"]


def test_an_answer_is_dated_and_drafted(server, tmp_path, monkeypatch) -> None:
    """The date of the source is that of the answer, and its name that of the region too."""
    monkeypatch.chdir(tmp_path)
    done = run("import", *REGION, "--endpoint-url", server, "--type", "p5.48xlarge")
    (source,) = (tmp_path / "drafts/sources").iterdir()

    assert (0, "") == (done.status, done.err)
    assert source.name.startswith("ec2-api-us-east-1-2")
    assert "chips: {chip: h100, count: 8}" in (tmp_path / "drafts/servers/p5.48xlarge.yaml").read_text()


def test_pages(monkeypatch) -> None:
    """All of them are asked for; moto has but one, so the client's own stubs answer here."""
    import boto3
    from botocore.stub import Stubber

    client = boto3.client("ec2", region_name="us-east-1")
    stub = Stubber(client)
    stub.add_response(
        "describe_instance_types", {"InstanceTypes": [{"InstanceType": "trn1.2xlarge"}], "NextToken": "t"}
    )
    stub.add_response(
        "describe_instance_types", {"InstanceTypes": [{"InstanceType": "trn1.32xlarge"}]}, {"NextToken": "t"}
    )
    monkeypatch.setattr(boto3.Session, "client", lambda *args, **more: client)
    with stub:
        answer = fetch("us-east-1")

    assert ["trn1.2xlarge", "trn1.32xlarge"] == [r["InstanceType"] for r in answer.data["InstanceTypes"]]
    stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--region", "no such"], "EC2 in no such cannot be queried: InvalidRegionError"),
        (
            [*REGION, "--endpoint-url", "http://127.0.0.1:9"],
            "EC2 in us-east-1 cannot be queried: EndpointConnectionError",
        ),
        ([*REGION, "--endpoint-url", "nowhere"], "EC2 in us-east-1 cannot be queried: ValueError: Invalid endpoint"),
    ],
)
def test_refusals(args, message, monkeypatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    done = run("audit", *args)

    assert (2, "") == (done.status, done.out)
    assert done.err.startswith(f"trnspec: {message}"), done.err


def test_a_type_that_the_api_does_not_know(server) -> None:
    done = run("audit", *REGION, "--endpoint-url", server, "--type", "trn0.nano")

    assert 2 == done.status
    assert "InvalidInstanceType" in done.err


def test_without_credentials(monkeypatch, server) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    done = run("audit", *REGION, "--endpoint-url", server)

    assert (2, "trnspec: EC2 in us-east-1 cannot be queried: NoCredentialsError: Unable to locate credentials") == (
        done.status,
        done.err,
    )


def test_without_boto3(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(UsageError, match=r"--region needs boto3: pip install 'trnspec-ec2\[boto3\]'"):
        fetch("us-east-1")
