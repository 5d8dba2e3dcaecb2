"""EC2 DescribeInstanceTypes for trnspec: a command that checks it against the catalog and drafts documents of it."""

from trnspec import Command, Plugin

plugin = Plugin(
    name="ec2",
    api=1,
    commands=(
        Command("ec2", "Check EC2 DescribeInstanceTypes against the catalog; draft documents.", "trnspec_ec2.cli:ec2"),
    ),
)
