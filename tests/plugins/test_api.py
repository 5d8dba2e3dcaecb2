"""trnspec.plugins.api: what plugins add, and what two of them may not."""

import pytest
from attrs import evolve

from trnspec.api import registry
from trnspec.diagnostics import Code, Severity
from trnspec.errors import UsageError
from trnspec.model.chip import Chip
from trnspec.plugins.api import API, Evaluator, Exporter, Finding, Kind, Plugin, Registry, Reporter, Rule, rule


@rule("ABC01", "no-good", over=Chip, severity=Severity.WARNING)
def no_good(node, graph):
    """Nothing is good."""
    yield Finding(("spec",), "it is not good")


CODE = Code("ABC02", "bad", Severity.ERROR, "Everything\nis bad.\n\nWhy:\n    Because.")
KIND = Kind("Thing", "things", Chip)
SIZE = Evaluator("size", "The size of a thing.", "operator:length_hint")
COUNT = Exporter("count", ".txt", "Number of documents.", all=len)
SHORT = Reporter("short", "One line.", repr)
ONE = Plugin(
    name="one",
    api=API,
    kinds=(KIND,),
    rules=(no_good,),
    codes=(CODE,),
    evaluators=(SIZE,),
    exporters=(COUNT,),
    reporters=(SHORT,),
    explanations=(iter,),
)


def test_rule_of_a_function() -> None:
    code = no_good.code
    assert ("ABC01", "no-good", Severity.WARNING, "Nothing is good.") == (code.id, code.name, code.severity, code.doc)
    assert (Chip, False) == (no_good.over, no_good.local)
    assert [f.message for f in no_good.check(None, None)] == ["it is not good"]
    assert not Rule(CODE, None, iter).local


def test_rule_needs_an_explanation() -> None:
    with pytest.raises(TypeError, match="ABC03"):

        @rule("ABC03", "silent")
        def silent(graph):
            yield from ()


def test_registry() -> None:
    known = Registry.of([ONE])

    assert known.kinds == {"Thing": KIND}
    assert list(known.codes) == ["ABC01", "ABC02"]
    assert (no_good,) == known.rules
    assert ({"size": SIZE}, {"count": COUNT}, {"short": SHORT}) == (known.evaluators, known.exporters, known.reporters)
    assert (iter,) == known.explanations
    assert known.codes["ABC02"].summary == "Everything is bad."


@pytest.mark.parametrize(
    ("name", "message"),
    [("ABC05", "there is no code 'ABC05'; did you mean"), ("no-god", "did you mean 'no-good'"), ("@", "no code '@'$")],
)
def test_unknown_code(name, message) -> None:
    with pytest.raises(UsageError, match=message):
        Registry.of([ONE]).code(name)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Plugin(name="two", api=API, kinds=(KIND,)), "kind 'Thing' is defined by two plugins: one and two"),
        (Plugin(name="two", api=API, codes=(CODE,)), "code 'ABC02' is defined by two plugins: one and two"),
        (Plugin(name="two", api=API, rules=(no_good,)), "code 'ABC01' is defined by two plugins: one and two"),
        (Plugin(name="two", api=API, kinds=(Kind("Other", "things", Chip),)), "folder 'things' is defined by two"),
        (Plugin(name="two", api=API, evaluators=(SIZE,)), "evaluator 'size' is defined by two plugins: one and two"),
        (Plugin(name="two", api=API, exporters=(COUNT,)), "exporter 'count' is defined by two plugins: one and two"),
        (Plugin(name="two", api=API, reporters=(SHORT,)), "reporter 'short' is defined by two plugins: one and two"),
        (Plugin(name="one", api=API), "two plugins are named one; rename one of them"),
        (Plugin(name="two", api=API + 1), f"the plugin two was written for API {API + 1}; this is API {API}"),
    ],
)
def test_plugins_that_do_not_fit(other, message) -> None:
    with pytest.raises(UsageError, match=message):
        Registry.of([ONE, other])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("trnspec_no_such:f", "size: trnspec_no_such:f cannot be imported: ModuleNotFoundError"),
        ("operator:no_such", "size: operator:no_such cannot be imported: AttributeError"),
        ("operator", "size: operator cannot be imported"),
        ("math:pi", "size: math:pi is not a function"),
    ],
)
def test_functions_that_are_not_there(run, message) -> None:
    with pytest.raises(UsageError, match=message):
        Evaluator("size", "The size.", run).load()


@pytest.mark.parametrize("name", ["ABC02", "abc02", "bad"])
def test_code_by_id_or_name(name) -> None:
    assert CODE is Registry.of([ONE]).code(name)


def test_formats_by_name() -> None:
    known = Registry.of([ONE])

    assert (known.exporter("count"), known.reporter("short")) == (COUNT, SHORT)
    with pytest.raises(UsageError, match="there is no export format 'cuont'; did you mean 'count'"):
        known.exporter("cuont")
    with pytest.raises(UsageError, match="there is no report format '@'; available: short"):
        known.reporter("@")


def test_provider() -> None:
    known = Registry.of([ONE], {"one": "trnspec-one 1.0"})

    assert {"the plugin one of trnspec-one 1.0"} == {
        known.provider(v) for v in (KIND, no_good, CODE, SIZE, COUNT, SHORT)
    }
    assert "the plugin two" == Registry.of([evolve(ONE, name="two")]).provider(COUNT)
    assert "trnspec" == registry().provider(registry().rules[0])
