"""A plugin with an invalid kind, value or function is reported with the name of what is wrong, and nothing else fails."""

import pytest

from tests.support.invented_plugins import ACME
from tests.support.programs import ROOT, Site, written

FILE = ROOT / "catalog" / "chips" / "trainium2.yaml"

KIND = """
from collections.abc import Mapping
from attrs import define, frozen
from trnspec.model.chip import Chip
from trnspec.model.fields import Capacity
from trnspec.plugins.api import Command, Exporter, Reporter, Rule
from trnspec.diagnostics import Code, Severity

{decorator}
class Store{base}:
    {doc}
    {fields}
"""


def kind(
    fields: str, *, decorator: str = "@frozen(kw_only=True)", base: str = "", doc: str = '"""A storage."""'
) -> str:
    return KIND.format(fields=fields, decorator=decorator, base=base, doc=doc)


PARTS = """
from trnspec.model.parts import Parts
from trnspec.model.ref import Ref
""" + kind("chip: Ref[Chip]\n    count: int\n\n    def parts(self) -> Parts[Chip]:\n        return RESULT")
STORE = "kinds=(Kind('Store', 'stores', Store),)"
SOUND = kind("size: Capacity | None = None")

# Source, arguments of Plugin, and what the fault must name: the kind and the field or the value, and how to fix it.
BROKEN = {
    "list": (kind("capacity: list | None = None"), STORE, ("kind Store", "field Store.capacity", "list; use tuple[T, ...]")),
    "dict": (kind("parts: dict[str, int]"), STORE, ("kind Store", "field Store.parts", "Mapping[str, T]")),
    "plain": (kind("size: Capacity", decorator=""), STORE, ("kind Store", "class Store is not an attrs class", "@attrs.frozen")),
    "derived": (kind("size: Capacity", decorator="", base="(Chip)"), STORE, ("class Store is not an attrs class",)),
    "mutable": (kind("size: Capacity", decorator="@define"), STORE, ("class Store is mutable", "@attrs.frozen")),
    "misspelt": (kind('size: "Nope | None" = None'), STORE, ("field Store.size", "'Nope' is not defined")),
    "example": (
        kind("size: float | None = None", doc='"""A storage.\n\n    Attributes:\n        size: The size. Example: 1 PB\n    """'),
        STORE,
        ("kind Store", "field Store.size", "'1 PB' is not a number", "Capacity"),
    ),
    "default": (
        kind("size: Capacity | None = '40 GiB'"), STORE, ("field Store.size", "the default '40 GiB' is not of its type")
    ),
    "default-number": (kind("n: int = 'x'"), STORE, ("field Store.n", "the default 'x'")),
    "default-none": (kind("n: int = None"), STORE, ("field Store.n", "the default None")),
    "default-list": (
        kind("n: tuple[int, ...] = field(factory=list)").replace("define, frozen", "define, field, frozen"),
        STORE, ("field Store.n", "the default []"),
    ),
    "ref": (kind("chip: Ref").replace("from trnspec.model.fields", "from trnspec.model.ref import Ref\nfrom trnspec.model.fields"),
            STORE, ("field Store.chip", "Ref[Server]")),
    "renamed": (kind("size: Capacity\n    RENAMED = {'old': len}"), STORE, ("Store.RENAMED", "both texts")),
    "swapped": (PARTS.replace("RESULT", "((self.chip, self.count),)"), STORE, ("Store.parts()", "(count, ref)", "Ref(name=")),
    "no-parts": (PARTS.replace("RESULT", "None"), STORE, ("Store.parts() raises TypeError", "(count, ref)")),
    "parts-of-int": (PARTS.replace("Parts[Chip]", "Parts[int]").replace("RESULT", "()"), STORE, ("Parts[int]", "name the classes")),
    "upgrade": (
        SOUND, "kinds=(Kind('Store', 'stores', Store, upgrade={'acme/v1': 5}),)",
        ("kind Store", "upgrade: 'acme/v1' is of type int; a function is expected"),
    ),
    "silent": (kind("size: Capacity", doc=""), STORE, ("kind Store", "no docstring")),
    "unnamed": (SOUND, "kinds=(Kind('', 'stores', Store),)", ("name is ''", "such as Rack")),
    "nested": (
        SOUND + "class Part:\n    pass\n\n@frozen\nclass Shelf:\n    '''A shelf.'''\n    part: Part\n",
        "kinds=(Kind('Shelf', 'shelves', Shelf),)",
        ("kind Shelf", "field Shelf.part", "cannot hold a Part"),
    ),
    "function": (SOUND + "def check(graph):\n    yield\n", "rules=(check,)", ("rules[0]", "function", "@rule")),
    "over": (
        SOUND,
        "rules=(Rule(Code('ACME001', 'bad', Severity.ERROR, 'D.'), 'Chip', print),)",
        ("rule ACME001 bad", "over is of type str; a class such as Chip or None"),
    ),
    "uncallable": (SOUND, "rules=(Rule(Code('ACME001', 'bad', Severity.ERROR, 'D.'), Chip, 5),)", ("ACME001", "check is of type int")),
    "code": (SOUND, "codes=(Code('bad-1', 'bad', Severity.ERROR, 'D.'),)", ("id is 'bad-1'", "such as ACME001")),
    "evaluator": (SOUND, "evaluators=(Evaluator('e', 'E.', 5),)", ("evaluator e", "run is of type int")),
    "summary": (SOUND, "evaluators=(Evaluator('e', '', 'a:b'),)", ("evaluator e", "summary is ''; one sentence")),
    "exporter": (SOUND, "exporters=(Exporter('x', '.x', 'X.'),)", ("exporter x", "'one'", "'all'")),
    "exported": (SOUND, "exporters=(Exporter('x', '.x', 'X.', one=5),)", ("exporter x", "one is of type int")),
    "reporter": (SOUND, "reporters=('json2',)", ("reporters[0]", "a Reporter is expected")),
    "command": (SOUND, "commands=(Command('c d', 'C.', 'a:b'),)", ("command c d", "'c d'")),
    "untupled": (SOUND, "kinds=[Kind('Store', 'stores', Store)]", ("kinds is of type list", "tuple")),
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    """All of them, and one that is sound, installed at once."""
    made = Site(tmp_path_factory.mktemp("isolation"))
    for name, (head, arguments, _) in BROKEN.items():
        made.plugin(name, arguments, head=head)
    made.plugin("zz-sound", STORE, head=SOUND)
    return made


@pytest.fixture(scope="module")
def records(site) -> dict[str, dict]:
    done = site.run("plugin", "list", "--format", "json")

    assert 0 == done.status, done.err
    return {r["name"]: r for r in done.data["plugins"]}


@pytest.mark.parametrize("name", BROKEN)
def test_plugin_fault_names_its_cause(records, name) -> None:
    (fault,) = records[name]["faults"]

    assert ("invalid", fault) == (records[name]["status"], records[name]["message"])
    assert [] == [part for part in BROKEN[name][2] if part not in fault]


def test_the_sound_one_is_used(records) -> None:
    assert ("ok", [], "") == tuple(records["zz-sound"][k] for k in ("status", "faults", "message"))


@pytest.mark.parametrize(
    "args",
    [
        ("list", "chips"),
        ("show", "trainium2"),
        ("validate", FILE),
        ("eval", "training", "--help"),
        ("export", "json", "trainium2"),
        ("explain", "store"),
    ],
    ids=lambda args: args[0],
)
def test_commands_run_with_broken_plugins_installed(site, args) -> None:
    done = site.run(*args)
    lines = done.err.splitlines()

    assert 0 == done.status, done.err
    assert [f"the plugin {n} of trnspec-{n} 1.0 is left out" for n in sorted(BROKEN)] == [
        line.removeprefix("trnspec: warning: ").partition(":")[0] for line in lines
    ]


# Rules that raise.

RULES = '''
from trnspec.model.chip import Chip

def capacity(node):
    return node.spec.memory.capacity / 0

@rule("ACME001", "bad-rule", over=Chip)
def bad(node, graph):
    """It fails."""
    yield Finding(("spec",), str(capacity(node)))
'''


def test_a_rule_that_raises(tmp_path) -> None:
    """TRN900 names rule, plugin and distribution, and the line of the plugin that raised."""
    site = Site(tmp_path / "site")
    module = site.plugin("rules", "rules=(bad,)", head=RULES)
    line = module.read_text().splitlines().index("    return node.spec.memory.capacity / 0") + 1
    done = site.run("validate", FILE, "--format", "json")
    (finding,) = done.data["diagnostics"]
    (see,) = finding["see"]

    text = "return node.spec.memory.capacity / 0"
    assert ("TRN900", module.name, line, text) == (finding["code"], see["file"], see["line"], see["text"])
    assert len("    return ") + 1 == see["column"]
    assert finding["message"].startswith(
        f"rule ACME001 bad-rule of the plugin rules of trnspec-rules 1.0 failed at {module}:{line}: "
    )
    assert "" == done.err

    traced = site.run("--traceback", "validate", FILE).err

    assert traced.startswith("Traceback (most recent call last)")
    assert f'File "{module}", line {line}, in capacity' in traced


# Exporters and reporters of plugins.

FORMATS = '''
from trnspec.output.exporters.exported import ExportAssumption, Export
from trnspec.plugins.api import Exporter, Reporter

def one(node, graph):
    return Export(f"{node.name} {len(graph)}\\n", (ExportAssumption("rate", "peak"),))

def all_(graph):
    return Export(f"{len(graph)}\\n")

def wrong(node, graph):
    return "text"

def raises(*args, **options):
    raise KeyError("rate")

def count(report, **_):
    return str(len(report.diagnostics))

def number(report, **_):
    return 5

def endless(*_, **options):
    while True:
        pass

def loop(catalog, *, x: int = 0):
    """It does not end."""
    endless()
'''
ADDED = """exporters=(
    Exporter('names', '.txt', 'the names', one='trnspec_formats:one', all=all_, inline=False),
    Exporter('wrong', '.txt', 'no Export', one=wrong),
    Exporter('raises', '.txt', 'it raises', one=raises),
    Exporter('absent', '.txt', 'not there', one='trnspec_formats:absent'),
    Exporter('endless', '.txt', 'it does not end', one=endless),
), evaluators=(Evaluator('endless', 'It does not end.', loop),), reporters=(
    Reporter('count', 'the number of findings', 'trnspec_formats:count'),
    Reporter('number', 'no text', number),
    Reporter('stops', 'it raises', raises),
    Reporter('endless', 'it does not end', endless),
)"""
ABSENT = "AttributeError: module 'trnspec_formats' has no attribute 'absent'"
PROVIDER = "of the plugin formats of trnspec-formats 1.0"


@pytest.fixture(scope="module")
def formats(tmp_path_factory) -> Site:
    made = Site(tmp_path_factory.mktemp("formats"))
    made.plugin("formats", ADDED, head=FORMATS)
    made.catalog("acme", ACME)
    return made


def test_an_exporter_of_a_plugin(formats) -> None:
    one, every = formats.run("export", "names", "acme-1"), formats.run("export", "names")

    assert (0, "assumed: rate: peak\n") == (one.status, one.err)
    assert ("acme-1", every.out) == tuple(one.out.split(" "))
    assert (0, "") == (every.status, every.err)


def test_help_and_completion_list_the_formats_of_plugins(formats) -> None:
    def completed(words: str, count: int) -> list[str]:
        env = {"_TRNSPEC_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        return [line.partition(",")[2] for line in formats.run(**env).out.split()]

    assert "  names           the names\n" in formats.run("export", "--help").out
    assert "the names" not in formats.run("--no-plugins", "export", "--help").out
    assert "junit|count|" in formats.run("validate", "--help").out.replace("\n", "").replace(" ", "")
    assert ["names"] == completed("trnspec export na", 2)
    assert [] == completed("trnspec --no-plugins export na", 3)
    assert ["count"] == completed("trnspec validate --format co", 3)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("export", "wrong", "acme-1"), f"the exporter wrong {PROVIDER} returned a str; an Export is expected"),
        (("export", "wrong"), "wrong exports one document at a time; name one, such as a server or an UltraServer"),
        (("export", "raises", "acme-1"), f"the exporter raises {PROVIDER} failed: KeyError: 'rate'"),
        (
            ("export", "absent", "acme-1"),
            f"the exporter absent {PROVIDER}: trnspec_formats:absent cannot be imported: {ABSENT}",
        ),
        (("export", "nams"), "there is no export format 'nams'; did you mean 'names'?"),
        (("validate", FILE, "--format", "number"), f"the reporter number {PROVIDER} returned a int; a str is expected"),
        (("validate", FILE, "--format", "stops"), f"the reporter stops {PROVIDER} failed: KeyError: 'rate'"),
        (("validate", FILE, "--format", "countt"), "there is no report format 'countt'; did you mean 'count'?"),
    ],
)
def test_errors_name_the_plugin(formats, args, message) -> None:
    done = formats.run(*args)

    assert (2, "", f"trnspec: {message}\n") == (done.status, done.out, done.err)


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("export", "endless", "acme-1"), "exporter"),
        (("validate", FILE, "--format", "endless"), "reporter"),
        (("eval", "endless"), "evaluator"),
    ],
)
def test_functions_without_end_are_stopped(formats, args, what) -> None:
    done = formats.run(*args, TRNSPEC_RULE_SECONDS="0.2")
    message = f"the {what} endless {PROVIDER} failed: TimeLimitError: it took longer than 0.2 s"

    assert (2, "", f"trnspec: {message}\n") == (done.status, done.out, done.err)


def test_parts_that_fail_for_one_document(tmp_path) -> None:
    site = Site(tmp_path / "site")
    site.plugin("rack", STORE, head=PARTS.replace("RESULT", "((1 if self.count < 9 else '9', self.chip),)"))
    site.catalog("acme", ACME)
    text = "api_version: trnspec/v1\nkind: Store\nmetadata: {name: big, title: Big, source: acme-page}\n"
    written(site.folder / "stores" / "big.yaml", text + "spec: {chip: acme-1, count: 9}\n")
    (finding,) = site.run("validate", "stores", "--format", "json").data["diagnostics"]

    assert ("TRN190", 4) == (finding["code"], finding["line"])
    assert "Store.parts() has the part ('9', Ref(name='acme-1'))" in finding["message"]
    assert "the kind Store of the plugin rack of trnspec-rack 1.0" in finding["message"]

    done = site.run("query", "chip where memory.capacity = 64 GiB", "--catalog", ".")

    assert (0, True) == (done.status, "TRN190" in done.err)
