"""DescribeInstanceTypes from the API itself, with boto3 and the credentials of the user."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from attrs import frozen

from trnspec import UsageError


@frozen
class Answer:
    """The response of the API.

    Attributes:
        data: All pages together: ``{"InstanceTypes": [...]}``.
        date: The day of the answer in UTC, from its HTTP header: ``2026-08-21``; empty without one.
    """

    data: dict[str, Any]
    date: str


def fetch(region: str, endpoint: str | None = None, types: tuple[str, ...] = ()) -> Answer:
    """Fetch all instance types of a region, page by page.

    Args:
        region: The region: ``us-east-1``.
        endpoint: The address to use instead of that of the region.
        types: Only these types; all when there are none.

    Raises:
        UsageError: boto3 is not installed, there are no credentials, or the API rejects the request; the message has the reason.
    """
    try:
        boto3: Any = import_module("boto3")
        errors: Any = import_module("botocore.exceptions")
    except ImportError as error:
        raise UsageError(f"--region needs boto3: pip install 'trnspec-ec2[boto3]' ({error})") from error
    fetched: list[Any] = []
    date = ""
    try:
        # A separate session: the default one of boto3 would keep the credentials of another call.
        client = boto3.Session().client("ec2", region_name=region, endpoint_url=endpoint)
        wanted = {"InstanceTypes": list(types)} if types else {}
        for page in client.get_paginator("describe_instance_types").paginate(**wanted):
            fetched += page["InstanceTypes"]
            date = date or _day(page.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", ""))
    except (errors.BotoCoreError, errors.ClientError, ValueError) as error:
        detail = " ".join(str(error).split())
        raise UsageError(f"EC2 in {region} cannot be queried: {type(error).__name__}: {detail}") from error
    return Answer({"InstanceTypes": fetched}, date)


def _day(text: str) -> str:
    try:
        return parsedate_to_datetime(text).date().isoformat()
    except ValueError:
        return ""
