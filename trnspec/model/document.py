"""The envelope that every document shares: metadata, claims, waivers; and the node of the graph."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from attrs import field, frozen

from trnspec.model.annotations import MOST_PATHS, Name, Pattern, Text, Unsourced
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.short_repr import ShortRepr
from trnspec.yaml import Document, Path

API_VERSION = "trnspec/v1"
OLDER_VERSIONS = ("trnspec/v1alpha1",)
"""The formats whose attributes may have other paths, ``RENAMED`` of their classes; they are read as the present one."""
API_VERSIONS = (API_VERSION, *OLDER_VERSIONS)

PathText = Annotated[
    str,
    Pattern(
        r"^spec(\.([A-Za-z0-9_-]+|\{[A-Za-z0-9_-]+(,[A-Za-z0-9_-]+)*\}))+$",
        "a path such as spec.memory.bandwidth or spec.peak.dense.{bf16,fp16}",
        longest=200,
        paths=MOST_PATHS,
    ),
]
CodeText = Annotated[str, Pattern(r"^[A-Z]{2,8}[0-9]{2,4}$", "a code such as TRN402")]

Verdict = Literal["agrees", "rounded", "superseded", "rejected", "other-scope", "unresolved"]
"""Decision about a claim:

``agrees``       it gives the same value within its digits;
``rounded``      it is a coarser rendering of the same figure, by rounding or by truncation;
``superseded``   it was true to its day and its publisher has changed it since;
``rejected``     it is wrong;
``other-scope``  it is right, but for another quantity than this attribute;
``unresolved``   it is not known which value is right.
"""


@frozen(kw_only=True, repr=False)
class Waiver(Unsourced):
    """A finding that is accepted: which, where and why. One that suppresses nothing is itself a finding.

    Attributes:
        code: The code of the finding. Example: TRN402
        at: The path of the finding in this document; by default the whole document. Example: spec.stated.peak.dense.bf16
        reason: The reason for accepting it.
    """

    code: CodeText
    at: PathText | None = None
    reason: Text


@frozen(kw_only=True, repr=False)
class Metadata(Unsourced):
    """Name, title and source of a document.

    Attributes:
        name: The name that other documents refer to; the same as the file's. Example: trainium1
        title: The title. Example: AWS Trainium
        aliases: Other names for the same thing, older ones among them. Example: trn2-16.48xlarge
        source: The source of every figure below that names none of its own. Example: neuron-trainium-2024-02
        where: The place in that source. Example: lines 17 to 31
        note: A remark for readers of the document.
        allow: Findings that are accepted, each with its reason.
        overrides: In a document of a plugin that replaces the one of the same name: every path where the two differ.
            No other path may differ. Example: spec.memory.bandwidth
    """

    name: Name
    title: Text
    aliases: tuple[Name, ...] = ()
    source: Ref[Source] | None = None
    where: Text | None = None
    note: Text | None = None
    allow: tuple[Waiver, ...] = ()
    overrides: tuple[PathText, ...] = ()


@frozen(kw_only=True, repr=False)
class Claim(Unsourced):
    """The value that another source, or an older version of the same one, gives for a figure of this document.

    Attributes:
        at: The figure, or several at once. Example: spec.peak.dense.{bf16,fp16,tf32}
        says: The value as printed: a figure with its unit, a count or a word. Example: 210 TFLOPS
        source: The source of the claim. Example: neuron-trn1-2023-02
        where: The place in the source. Example: line 45
        verdict: The decision; it may be left out while the claim and the adopted figure overlap.
        scope: The quantity that a claim of other scope gives: a formula of figures, which is checked, or its name in words.
            Example: spec.links.bandwidth.both / 2
        reason: The reason for the verdict. A verdict other than "agrees" needs one.
    """

    at: PathText
    says: int | str
    source: Ref[Source]
    where: Text | None = None
    verdict: Verdict | None = None
    scope: Text | None = None
    reason: Text | None = None


T_co = TypeVar("T_co", covariant=True)


@frozen(kw_only=True, eq=False, repr=False)
class Node(ShortRepr, Generic[T_co]):
    """One document, structured.  Nodes are compared by identity: two files may say the same.

    Attributes:
        kind: The name of the kind, ``Chip``.
        metadata: Name, title, aliases, source and waivers.
        spec: The typed specification.
        claims: The values that other sources give for its figures.
        document: The text it was read from, with the source positions.
        positions: The index of each claim in the file's list, where invalid ones before it were left out.
        target: True for a document to check; others are context, to resolve names against.
        folder: The folder of a catalog for its kind, where a plugin brings the kind; empty for those of trnspec.
        units: The units that its figures and claims may be written in.
        api_version: The version of the documents of its kind.
    """

    kind: str
    metadata: Metadata
    spec: T_co
    claims: tuple[Claim, ...] = ()
    document: Document = field(repr=False)
    positions: tuple[int, ...] = ()
    target: bool = True
    folder: str = ""
    units: UnitTable = field(default=UNITS, repr=False)
    api_version: str = API_VERSION

    @property
    def name(self) -> str:
        """The name that other documents refer to."""
        return self.metadata.name

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return self.metadata.aliases

    @property
    def spec_class(self) -> type[T_co]:
        """The class of the spec."""
        return type(self.spec)

    def is_of(self, *specs: type) -> bool:
        """Whether the spec is of one of some classes, or of a class derived from it."""
        return isinstance(self.spec, specs)

    def claim_path(self, index: int) -> Path:
        """The path of the claim at ``index`` in the file."""
        return ("claims", self.positions[index] if self.positions else index)
