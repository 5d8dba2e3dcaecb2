"""trnspec audit --pages: what the pages of sources do not print."""

import json

from tests.checks.test_credit import pages  # noqa: F401  # a fixture


def test_values_that_are_not_printed(here, pages) -> None:  # noqa: F811
    done = here("audit", "--pages", str(pages), "trn1.32xlarge", "trn1.2xlarge", "host.vcpus", "--format", "json")
    data = json.loads(done.out)

    assert done.status == 1
    assert (data["values"], data["printed"]) == (2, {"line": 1, "page": 0, "no": 1})
    assert [(row["document"], row["figure"], row["says"]) for row in data["rows"]] == [
        ("trn1.2xlarge", "host.vcpus", "8")
    ]
    assert here("audit", "--pages", str(pages), "trn1.32xlarge", "host.vcpus").status == 0
