"""Results of benchmarks of serving: vllm bench serve, GenAI-Perf and AIPerf, one row for each file."""

from __future__ import annotations

from typing import Any

from trnspec.loading.benchmark_logs.log import Cells, Log, shown, whole

_PER_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3}


def vllm_bench(log: Log) -> list[Cells]:
    """The row of a result that ``vllm bench serve --save-result`` writes.

    The result does not state which server answered: ``backend`` is the protocol of the client.

    Raises:
        UsageError: It is not such a result, or no request completed.
    """
    value = log.json()
    completed, tpot = (_positive(log, value, key) for key in ("completed", "mean_tpot_ms"))
    notes = ["means over requests"]
    if failed := value.get("failed"):
        notes.append(f"failed requests: {failed}")
    if value.get("request_rate") not in (None, "inf"):
        notes.append(f"request rate {value['request_rate']:g}/s")
    prompt, output = (_positive(log, value, key) / completed for key in ("total_input_tokens", "total_output_tokens"))
    return [
        {
            "model": str(value.get("model_id") or ""),
            "isl": whole("isl", prompt, notes),
            "osl": whole("osl", output, notes),
            "batch_conc": _count(value.get("max_concurrency")),
            "ttft_ms": shown(_positive(log, value, "mean_ttft_ms")),
            "tpot_ms": shown(tpot),
            "out_tok_s": shown(_positive(log, value, "output_throughput")),
            "measured": _date(value.get("date")),
            "note": "; ".join(notes),
        }
    ]


def genai_perf(log: Log) -> list[Cells]:
    """The row of ``profile_export_genai_perf.json``.

    Raises:
        UsageError: It is not such a result, or the run did not stream.
    """
    value = log.json()
    config = _object(log, value, "input_config")
    return [_perf(log, value, _first(config.get("model")), config.get("concurrency"))]


def aiperf(log: Log) -> list[Cells]:
    """The row of ``profile_export_aiperf.json``.

    Raises:
        UsageError: It is not such a result, all requests failed, or the run did not stream.
    """
    value = log.json()
    config = _object(log, value, "input_config")
    endpoint, load = (config.get(key) or {} for key in ("endpoint", "loadgen"))
    return [_perf(log, value, _first(endpoint.get("model_names")), load.get("concurrency"))]


def _perf(log: Log, value: dict[str, Any], model: str, concurrency: object) -> Cells:
    notes = ["means over requests"]
    cells = {
        "model": model,
        "batch_conc": _count(concurrency),
        "ttft_ms": shown(_milliseconds(log, value, "time_to_first_token")),
        "tpot_ms": shown(_milliseconds(log, value, "inter_token_latency")),
        "measured": str(value.get("start_time") or "")[:10],
    }
    for column, key in (("isl", "input_sequence_length"), ("osl", "output_sequence_length")):
        if key in value:
            cells[column] = whole(column, _positive(log, _object(log, value, key), "avg", key), notes)
    if "output_token_throughput" in value:
        throughput = _object(log, value, "output_token_throughput")
        cells["out_tok_s"] = shown(_positive(log, throughput, "avg", "output_token_throughput"))
    return {**cells, "note": "; ".join(notes)}


def _milliseconds(log: Log, value: dict[str, Any], key: str) -> float:
    stats = _object(log, value, key)
    unit = stats.get("unit")
    if unit not in _PER_MS:
        raise log.problem(log.line_of(key), f"the unit of {key} is {unit!r}; expected one of {', '.join(_PER_MS)}")
    return _positive(log, stats, "avg", key) * _PER_MS[unit]


def _object(log: Log, value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    if isinstance(found, dict):
        return found
    hint = "only a run with --streaming measures it" if key == "inter_token_latency" else ""
    if key == "time_to_first_token" and value.get("error_summary"):
        hint = "requests failed; see error_summary"
    raise log.problem(log.line_of(key), f"the result has no object {key!r}", hint)


def _positive(log: Log, value: dict[str, Any], key: str, parent: str = "") -> float:
    found = value.get(key)
    name = f"{parent}.{key}" if parent else key
    try:
        figure = float(found)  # type: ignore[arg-type]  # GenAI-Perf 0.0.4 writes numbers as texts
    except (TypeError, ValueError):
        figure = 0.0
    if isinstance(found, bool) or not 0.0 < figure < float("inf"):
        stated = f"{name} is {found!r}" if key in value else f"the result has no {name}"
        raise log.problem(log.line_of(parent or key), f"{stated}; expected a number above 0")
    return figure


def _date(value: object) -> str:
    """The date of a result, which is printed as 20250530-203806."""
    text = str(value or "")
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}" if text[:8].isdigit() else ""


def _count(value: object) -> str:
    """A number of sequences; empty where the client did not limit it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _first(value: object) -> str:
    """The model of a run; empty where there are several."""
    if isinstance(value, list):
        return str(value[0]) if len(value) == 1 else ""
    return str(value or "")
