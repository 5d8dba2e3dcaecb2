"""Models made from config.json: against the counts of Transformers, against the catalog, and what is refused."""

import json
import re
from contextlib import suppress

import pytest
from attrs import asdict, evolve

from tests.support.programs import DATA, ROOT
from tests.support.rules import shipped
from tests.support.tables import tables
from trnspec.api import validate
from trnspec.cli.new import model_document
from trnspec.model.transformers.counting import parameters_of
from trnspec.model.transformers.huggingface.architectures import ARCHITECTURES, REFUSED
from trnspec.model.transformers.huggingface.config import ConfigError
from trnspec.model.transformers.huggingface.registry import imported
from trnspec.model.transformers.model import LocalAttention, Model

TABLES = tables(__file__)

CLASSES = json.loads((DATA / "config_json_classes.json").read_text())
"""For each architecture a config.json, and the parameters of the class that Transformers makes from it."""
MODELS = json.loads((DATA / "config_json_models.json").read_text())
"""For models of the catalog the published config.json."""
CATALOG = {node.name: node for node in shipped().of(Model)}
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
}  # fmt: skip


def refused(config: dict[str, object]) -> str:
    """The key at fault; the message names it."""
    with pytest.raises(ConfigError) as error:
        imported(config)
    assert error.value.key in str(error.value)
    return error.value.key


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_are_those_that_transformers_makes(name):
    assert CLASSES[name]["parameters"] == parameters_of(imported(CLASSES[name]["config"]).model)


@pytest.mark.parametrize("name", CLASSES)
def test_a_key_that_is_left_out_has_the_default_of_its_class_or_is_refused(name):
    config = CLASSES[name]["config"]
    for key in config.keys() - {"model_type", *TABLES["stated"]}:
        with suppress(ConfigError):
            found = imported({k: v for k, v in config.items() if k != key}).model
            assert f"{name} {key}" in TABLES["stated"] or imported(config).model == found, key


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_catalog_is_its_import(name):
    node, spec = CATALOG[name], imported(MODELS[name]["config"]).model
    adopted = evolve(node.spec, parameters=None, base=None)
    differing = {f"spec.{at}": value for at, value in _leaves(spec).items() if value != _leaves(adopted).get(at)}
    claims = {claim.at: claim.says for claim in node.claims if claim.verdict not in (None, "agrees")}
    assert {at: claims.get(at) for at in differing} == differing
    assert len(differing) <= 1
    assert differing or adopted == spec


def _leaves(spec: Model) -> dict[str, object]:
    return {
        ".".join((name, inner) if inner else (name,)): value
        for name, outer in asdict(spec).items()
        for inner, value in (outer.items() if isinstance(outer, dict) else [("", outer)])
    }


def test_models_without_a_configuration_are_listed():
    """The page names every model that is not compared with a config.json, with the reason."""
    page = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    table = page.partition("## Models without a configuration")[2]
    listed = re.findall(r"`([a-z0-9.-]+)`", "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)))
    assert sorted(set(CATALOG) - set(MODELS)) == sorted(listed)


def test_every_architecture_is_tested():
    tested = {each["config"]["model_type"] for each in CLASSES.values()}
    tested |= {(each["config"].get("text_config") or each["config"])["model_type"] for each in MODELS.values()}
    # Without a class of their own in Transformers, or with a head that is not counted; all are read by a row or a function tested above.
    untested = {
        "apertus", "deepseek_ref", "mimo", "mimo_v2", "minimax_m3_vl_text", "qwen2_5_vl", "qwen2_5_vl_text",
        "qwen2_vl", "qwen2_vl_text",
    }  # fmt: skip
    assert untested == set(ARCHITECTURES) - tested


@pytest.mark.parametrize(("changes", "key"), TABLES["refusals_name_the_key"])
def test_refusals_name_the_key(changes, key):
    assert key == refused(LLAMA | changes)


@pytest.mark.parametrize(("name", "changes", "key"), TABLES["refused_changes_of_classes"])
def test_a_changed_configuration_is_refused(name, changes, key):
    config = CLASSES[name]["config"]
    layers = config["num_hidden_layers"]
    words = {k: [v.split()[1]] * layers if str(v).startswith("LAYERS ") else v for k, v in changes.items()}
    assert key == refused(config | words)


def test_known_architectures_that_are_not_read_have_a_reason():
    for architecture, reason in REFUSED.items():
        with pytest.raises(ConfigError, match=re.escape(reason)):
            imported(LLAMA | {"model_type": architecture})
    assert not set(REFUSED) & set(ARCHITECTURES)


def test_a_default_is_noted():
    stated = imported(LLAMA)
    assert () == stated.notes
    assert "num_key_value_heads" == refused(
        {k: v for k, v in CLASSES["mixtral"]["config"].items() if k != "num_key_value_heads"}
    )
    without = imported({k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"})
    assert stated.model == without.model
    assert ["tie_word_embeddings" in note and "false" in note for note in without.notes] == [True]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (MODELS["deepseek-v3"]["config"], "first_k_dense_replace"),
        (CLASSES["gemma2"]["config"], "sliding_window"),
        (CLASSES["deepseek_v4"]["config"], "sliding_window"),
    ],
)
def test_a_default_is_noted_once(config, key):
    before = imported(config).notes
    added = [note for note in imported({k: v for k, v in config.items() if k != key}).notes if note not in before]
    assert 1 == len(added)
    assert "is the default of" in added[0]


def test_the_language_model_of_a_multimodal_model():
    nested = imported({"model_type": "llava", "text_config": LLAMA, "vision_config": {"hidden_size": 1024}})
    assert imported(LLAMA).model == nested.model
    assert ["text_config" in note for note in nested.notes] == [True]


@pytest.mark.parametrize(
    ("name", "changes", "key"),
    [
        ("gemma4_text", {"num_kv_shared_layers": 20}, "num_kv_shared_layers"),
        ("gemma4_text", {"hidden_size_per_layer_input": 256}, "hidden_size_per_layer_input"),
        ("laguna", {"num_attention_heads_per_layer": [48, 64] * 20}, "num_attention_heads_per_layer"),
        ("mimo_v2_flash", {"layer_types": None}, "hybrid_layer_pattern"),
        ("mimo_v2_flash", {"add_full_attention_sink_bias": True}, "add_full_attention_sink_bias"),
        ("deepseek_v4", {"compress_ratios": [0, 4, 16] * 15}, "compress_ratios"),
        ("granitemoehybrid", {"layer_types": ["linear_attention"] * 40}, "layer_types"),
        ("ernie4_5_moe", {"moe_layer_interval": 2}, "moe_layer_interval"),
    ],
)
def test_refuses_unmodelled_options(name, changes, key):
    assert key == refused(CLASSES[name]["config"] | changes)


@pytest.mark.parametrize(
    ("name", "changes", "windows"),
    [
        ("cohere2", {"layer_types": None}, (4096, 30)),
        ("cohere2", {"layer_types": None, "sliding_window_pattern": 5}, (4096, 32)),
        ("qwen2", {"layer_types": None, "use_sliding_window": True, "sliding_window": 4096}, (4096, 4)),
        ("qwen2", {"layer_types": None, "use_sliding_window": False, "sliding_window": 4096}, (None, None)),
    ],
)
def test_windows_without_a_list_of_layers(name, changes, windows):
    attention = imported(CLASSES[name]["config"] | changes).model.attention
    assert windows == (attention.window, attention.windowed)


def test_the_size_of_a_head_of_mamba2_follows_from_the_others():
    assert 64 == imported(CLASSES["bamba"]["config"] | {"mamba_d_head": "auto"}).model.recurrence.value_size


def test_heads_of_windowed_layers():
    """Stated only where they differ; where all layers are windowed they are those of the model."""
    config = CLASSES["mimo_v2_flash"]["config"]
    layers = config["num_hidden_layers"]
    assert LocalAttention(kv_heads=8, sinks="head") == imported(config).model.attention.local
    all_windowed = imported(config | {"layer_types": ["sliding_attention"] * layers}).model.attention
    assert (8, "head", None, None) == (
        all_windowed.kv_heads, all_windowed.sinks, all_windowed.local, all_windowed.windowed,
    )  # fmt: skip
    none = imported(config | {"layer_types": ["full_attention"] * layers}).model.attention
    assert (4, "none", None, None) == (none.kv_heads, none.sinks, none.local, none.window)
    values = imported(config | {"swa_head_dim": 128, "swa_v_head_dim": 128}).model.attention.local
    assert LocalAttention(kv_heads=8, head_size=128, sinks="head") == values


def test_documents_say_the_models(tmp_path):
    """Written and read again they are the same, and have no finding."""
    title = 'A "title": with # marks'
    for name, node in CATALOG.items():
        spec = evolve(node.spec, parameters=None)
        text = model_document(spec, name=f"again-{name}", title=title, notes=["One", "yes: no"])
        (tmp_path / f"again-{name}.yaml").write_text(text)
    result = validate([tmp_path])
    # The names make other families than those of the catalog, and the documents are copies.
    findings = {d.code for d in result.report.diagnostics if "again-" in d.where.file}
    assert findings <= {"TRN208", "TRN409"}
    for name, node in CATALOG.items():
        again = result.graph.named(f"again-{name}")
        assert evolve(node.spec, parameters=None) == again.spec
        assert (title, "One. yes: no.") == (again.metadata.title, again.metadata.note)


def test_the_command_writes_a_document(here):
    own = {"_name_or_path": "acme/Acme-8B-Instruct", "hidden_size": 3584, "intermediate_size": 9728, "num_hidden_layers": 30,
           "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 100352}  # fmt: skip
    (here.folder / "config.json").write_text(json.dumps(LLAMA | own))
    printed = here("new", "model", "--from", "config.json")
    assert (0, "") == (printed.status, printed.err)
    assert "\n  name: acme-8b-instruct\n  title: Acme-8B-Instruct\n" in printed.out
    written = here("new", "model", "mine", "--from", "config.json", "--title", "Mine", "--out", "models/mine.yaml")
    assert (0, "") == (written.status, written.err)
    assert written.out.startswith("models/mine.yaml: written.")
    assert 0 == here("validate", "models/mine.yaml").status
    assert 0 != here("new", "model", "--from", "config.json", "--name", "mine", "--out", "models/mine.yaml").status


@pytest.mark.parametrize(
    ("content", "words"), [("{", ":1:2"), ("[]", "no JSON object"), (json.dumps(LLAMA), "trnspec new model NAME")]
)
def test_the_command_refuses(here, content, words):
    (here.folder / "config.json").write_text(content)
    result = here("new", "model", "--from", "config.json")
    assert result.status != 0
    assert words in result.err
    assert "" == result.out


def test_evaluators_take_a_config(here):
    """A model of a file has the answers of the same model of the catalog."""
    (here.folder / "config.json").write_text(json.dumps(LLAMA))
    answers = [
        here("eval", "memory", "--model", model, "--on", "trn2.48xlarge", "--seq", "4096", "--format", "json").data[
            "answers"
        ]
        for model in ("config.json", "llama-3-8b", "meta-llama/Meta-Llama-3-8B-Instruct".replace("Meta-L", "L"))
    ]
    assert answers[0] == answers[1] == answers[2]
