"""Reader of config.json, the file that describes a model on the Hugging Face Hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from attrs import Factory, define, field, frozen

from trnspec.errors import UsageError
from trnspec.model.transformers.model import Model

REQUIRED = object()
"""Marks a key without a default."""

PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys below which the language model of a multimodal model is described."""

IGNORED = frozenset(
    """
    _attn_implementation _name_or_path activation activation_dropout activation_function adapter_config
    add_cross_attention afn architectures attention_dropout attention_multiplier attention_probs_dropout_prob
    attention_softmax_in_fp32 attention_temperature_tuning attention_value_scale attn_dropout attn_implementation
    attn_logit_softcapping attn_pdrop attn_scale attn_temperature_tuning audio_config auto_map aux_loss_alpha bad_words_ids
    begin_suppress_tokens bos_token_id cache_implementation chunk_size chunk_size_feed_forward classifier_dropout
    compress_rope_theta compression_config cross_attention_hidden_size decoder_start_token_id diversity_penalty do_sample
    dropout dtype dtype_plan early_stopping embd_pdrop embed_dropout embedding_dropout embedding_multiplier encoder_no_repeat_ngram_size
    eos_token_id ep_size exponential_decay_length_penalty ffn_dropout final_logit_softcapping finetuning_task floor_scale
    for_llm forced_bos_token_id forced_eos_token_id fused_bias_fc gradient_checkpointing hidden_act hidden_activation
    hidden_dropout hidden_dropout_prob id2label ignore_index init_std initializer_factor initializer_range
    initial_context_length is_decoder is_encoder_decoder is_llama_config keys_to_ignore_at_inference label2id layer_norm_eps
    layer_norm_epsilon layerdrop layernorm_epsilon learned_pos_emb length_penalty logit_scale logits_scaling mamba_hidden_act
    mamba_ssm_cache_dtype mamba_ssm_dtype max_length max_seq_len_cached min_length mlp_hidden_act model_max_length
    model_type moe_aux_loss_coeff moe_layer_use_mixer moe_normalize_expert_weights moe_renormalize
    moe_router_activation_func moe_router_dtype moe_router_scaling_factor moe_shared_expert_overlap mup_enabled
    n_ctx n_group n_special no_repeat_ngram_size norm_eps norm_epsilon norm_topk_prob norm_topk_prob num_beam_groups num_beams
    num_expert_group num_expert_groups num_labels num_limited_groups num_logits_to_keep num_return_sequences
    original_max_position_embeddings output_attentions output_hidden_states output_past output_router_logits output_scores
    pad_token_id partial_rotary_factor position_embedding_type predict_special_tokens prefix pretraining_tp problem_type
    pruned_heads qa_dropout qk_head_dim query_pre_attn_scalar quantization_config remove_invalid_values reorder_and_upcast_attn
    repetition_penalty rescale_prenorm_residual resid_pdrop residual_dropout residual_in_fp32 residual_multiplier return_dict
    return_dict_in_generate rms_norm_eps rope_interleave indexer_rope_interleave rope_local_base_freq rope_parameters rope_pct
    rope_scaling rope_theta rope_type rotary_base rotary_dim rotary_emb_base rotary_pct rotary_percentage route_norm
    route_scale routed_scaling_factor router_aux_loss_coef router_aux_loss_coefficient router_jitter_noise
    scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights scale_fmt score_func scoring_func
    sep_token_id seq_classif_dropout seq_aux sinusoidal_pos_embds skip_bias_add skip_bias_add_qkv slow_but_exact
    softmax_scale summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
    suppress_tokens swa_rope_theta swiglu_alpha swiglu_limit task_specific_params temperature text_model_type
    tf_legacy_loss tie_encoder_decoder time_step_floor time_step_limit time_step_max time_step_min time_step_rank
    tokenizer_class top_k top_p topk_group topk_method torch_dtype torchscript transformers_version type_vocab_size
    typical_p unk_index use_bfloat16 use_bidirectional_attention use_cache use_gemma_norm use_grouped_mm use_grouped_topk
    use_mamba_kernels use_mrope verbose vision_config warn_scale z_loss
    """.split()  # noqa: SIM905  # a list of this length is read more easily as text
)
"""Keys that change neither parameters nor work: training, generation, tokens, activations, rotary angles, scales."""


class ConfigError(UsageError):
    """A config.json from which no model can be made.

    Attributes:
        key: The key at fault.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def read_config(file: str, text: str | None = None) -> dict[str, Any]:
    """The keys and values of a config.json.

    Args:
        file: Its path.
        text: Its content where it was read already.

    Raises:
        UsageError: It cannot be read, or is not a JSON object.
    """
    try:
        value = json.loads(FilePath(file).read_bytes() if text is None else text, object_pairs_hook=_unique)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{file}: not a config.json: it holds no JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if repeated := [key for index, key in enumerate(keys) if key in keys[:index]]:
        raise ValueError(f"the key {repeated[0]!r} occurs twice")
    return dict(pairs)


@frozen
class Imported:
    """A model read from a config.json.

    Attributes:
        model: The model.
        notes: Defaults of missing keys, and what is left out.
    """

    model: Model
    notes: tuple[str, ...]


@define
class Config:
    """A config.json, and which of its keys were read.

    Attributes:
        values: The keys and their values.
        architecture: The value of ``model_type``.
        used: The keys that were read.
        notes: Defaults of missing keys, and what is left out.
    """

    values: Mapping[str, Any]
    architecture: str
    used: set[str] = field(default=Factory(set))
    notes: list[str] = field(default=Factory(list))

    def get(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key; the default of its class where it is missing or null, which is noted.

        A key such as ``attn_config.alibi`` is one of a section.

        Raises:
            ConfigError: It is missing and has no default.
        """
        section, _, inner = key.partition(".")
        if inner:
            return self.section(section).get(inner, default)
        self.used.add(key)
        value = self.values.get(key)
        if value is not None:
            return value
        if default is REQUIRED:
            raise ConfigError(key, f"config.json has no {key}, which {self.architecture} needs")
        if default is not None and key not in self.values:
            shown = str(default).lower() if isinstance(default, bool) else default
            note = f"{key} is not in config.json; {shown} is the default of {self.architecture}"
            if note not in self.notes:
                self.notes.append(note)
        return default

    def present(self, *keys: str) -> str:
        """The first of some names of a key that has a value; the first one if none has."""
        return next((key for key in keys if self.values.get(key) is not None), keys[0])

    def count(self, key: str, default: Any = REQUIRED) -> int:
        """A count of at least 1.

        Raises:
            ConfigError: It is missing and has no default, or is not a count.
        """
        return self._integer(key, default, 1, "a positive integer")

    def number(self, key: str, default: Any = REQUIRED) -> int:
        """A count, or 0.

        Raises:
            ConfigError: It is missing and has no default, or is neither.
        """
        return self._integer(key, default, 0, "an integer of at least 0")

    def _integer(self, key: str, default: Any, least: int, words: str) -> int:
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(key, f"{key} is {value!r}; expected {words}")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A value that is true or false.

        Raises:
            ConfigError: It is neither.
        """
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise ConfigError(key, f"{key} is {value!r}; expected true or false")
        return value

    def values_of(self, key: str, length: int | None = None) -> list[Any] | None:
        """A list, one element per layer where a length is given; ``None`` where it is missing or null.

        Raises:
            ConfigError: It is not a list, or has another length.
        """
        value = self.get(key, None)
        if value is not None and not isinstance(value, list):
            raise ConfigError(key, f"{key} is {value!r}; expected a list")
        if value is not None and length is not None and len(value) < length:
            raise ConfigError(key, f"{key} has {len(value)} elements; expected one for each of {length} layers")
        return value if value is None or length is None else value[:length]

    def rename(self, names: Mapping[str, str]) -> None:
        """Read keys that an architecture names otherwise: other names by the common ones, which take precedence."""
        self.used |= set(names.values())
        renamed = {common: self.values[name] for common, name in names.items() if name in self.values}
        self.values = {**renamed, **self.values}

    def section(self, key: str) -> Config:
        """The keys below a key; notes are shared.

        Raises:
            ConfigError: It is missing, or not an object.
        """
        value = self.get(key)
        if not isinstance(value, dict):
            raise ConfigError(key, f"{key} is {value!r}; expected an object")
        return Config(value, self.architecture, notes=self.notes)

    def expect(self, **allowed: Any) -> None:
        """Refuse keys that are present with another value than the allowed one; a tuple lists several.

        Raises:
            ConfigError: A key has another value.
        """
        for key, one in allowed.items():
            values = one if isinstance(one, tuple) else (one,)
            value = self.get(key, None)
            if value is not None and value not in values:
                known = " or ".join(str(v).lower() if isinstance(v, bool) else repr(v) for v in values)
                raise ConfigError(key, f"{key} is {value!r}; {self.architecture} can be imported with {known} only")

    def finish(self) -> None:
        """Refuse keys that nothing has read and that may matter.

        Raises:
            ConfigError: There is one; the message names the first.
        """
        for key, value in self.values.items():
            known = key in self.used or key in IGNORED or key in PARTS
            # A feature that is switched off changes nothing.
            if (
                not known
                and value not in (None, False, 0, "", [], {})
                and not key.endswith(("_token_id", "_token_index"))
            ):
                message = f"{key} is {value!r}, which is not known for {self.architecture}; it may change the model"
                raise ConfigError(key, message)
