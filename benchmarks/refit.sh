#!/bin/sh
# Fits every shipped calibration anew, one command for each; about five minutes. `make calibrations` runs it.
#
# TRNSPEC is the command, OUT a folder to write to instead of the catalogs, FITS a part of the options of the fits to run.
# No fit reads another one, and one that is repeated without a change keeps its date: a second run changes nothing.
set -eu
cd "$(dirname "$0")/.."
TRNSPEC=${TRNSPEC:-.venv/bin/trnspec}
NVIDIA=plugins/trnspec-nvidia/src/trnspec_nvidia/catalog
INFERENTIA=plugins/trnspec-inferentia/src/trnspec_inferentia/catalog
MEASURED=catalog/measured

fit() {
    out=$1
    shift
    case "$*" in *"${FITS:-}"*) ;; *) return ;; esac
    echo "calibrate $*"
    $TRNSPEC calibrate "$@" --prior none --out "${OUT:-$out}" --force --catalog $NVIDIA --catalog $INFERENTIA | grep '^wrote'
}

# AWS.
fit catalog $MEASURED/training_trn1.csv --software Neuron --framework nxd --era 2024 --name neuron --source neuron-benchmarks-2026-08

# Serving on Neuron. Reference implementations that are not tuned (linear attention in PyTorch, GLM-5) are not fitted; they are
# scored, and widen the interval. Rows of other software (Kiln, PyTorch, nkipy, megakernels, mini-verl) are scored only. Rows of
# models with experts are few, so those of all frameworks and chips are one fit.
set -- $MEASURED/inference_neuron.csv --only '^(trn1|inf2)-' --software 'Transformers NeuronX' \
    --framework transformers-neuronx --era 2024 --source neuron-benchmarks-2026-08
fit catalog "$@" --document trainium1
fit $INFERENTIA "$@" --document inferentia2
set -- $MEASURED/inference_neuron.csv --only '^optimum-' --software 'Optimum Neuron' --framework optimum-neuron --era 2025 \
    --source neuron-benchmarks-2026-08 --models dense
fit catalog "$@" --document trainium1
fit $INFERENTIA "$@" --document inferentia2
UNTUNED='jb-qwen3|jb-glm|ndi-glm' OTHER='kiln-|ds-|nkipy|nkimoe-gptoss20b-mega|rl-Qwen3-8B-mv'
fit catalog $MEASURED/inference_neuron_2026.csv --only "^(?!$UNTUNED|$OTHER)" --also "^($UNTUNED)" --software 'NxD Inference' --framework nxd-inference \
    --era 2026 --source neuronstuff-48c4bc5 --models dense --document trainium2 --document trainium3
set -- $MEASURED/inference_neuron.csv $MEASURED/inference_neuron_2026.csv --only "^(?!$UNTUNED|$OTHER)" --also "^($UNTUNED)" --models experts \
    --software 'NxD Inference and Optimum Neuron' --source neuronstuff-48c4bc5
fit catalog "$@" --framework nxd-inference --era 2026 --document trainium2 --document trainium3
fit $INFERENTIA "$@" --framework nxd-inference --era 2026 --document inferentia2
fit catalog "$@" --framework optimum-neuron --era 2025 --document trainium1
fit $INFERENTIA "$@" --framework optimum-neuron --era 2025 --document inferentia2

# NVIDIA. Rows of ZeRO-3 with the DeepSpeed of 2021 are not those of Megatron-LM. training_korthikanti.csv is in no fit.
ZERO='sc21-t2-ZeRO-3' PTD='sc21-(t1|t2-PTD-P)'
fit $NVIDIA $MEASURED/training_mpt.csv --chip a100-40gb --chip a100-80gb --software 'LLM Foundry' --framework llm-foundry --era 2023 \
    --name llm-foundry --source llm-foundry-benchmarking
fit $NVIDIA $MEASURED/training_mpt.csv --chip h100-sxm --software 'LLM Foundry' --framework llm-foundry --era 2023 --name llm-foundry \
    --source llm-foundry-benchmarking
fit $NVIDIA $MEASURED/training_megatron_sc21.csv --only "^$PTD" --software Megatron-LM --framework megatron --era 2021 \
    --source megatron-lm-2021-08
fit $NVIDIA $MEASURED/training_megatron_sc21.csv --only "^$ZERO" --software DeepSpeed --framework deepspeed --era 2021 \
    --source megatron-lm-2021-08
fit $NVIDIA $MEASURED/training_a100_vtrain.csv --software Megatron-DeepSpeed --framework megatron --era 2022 --source vtrain-2024
fit $NVIDIA $MEASURED/training_torchtitan.csv --software torchtitan --framework torchtitan --era 2024 --name torchtitan \
    --source torchtitan-llama3-h100-2024-12

# Megatron Core with Transformer Engine. Dense models changed little from 2023 on; models with experts did in each release.
set -- --software 'Megatron Core' --framework megatron --name megatron --source megatron-bridge-2026-08 \
    --document h100-sxm --document h200 --document b200 --document b300 --document gb200 --document gb300
fit $NVIDIA $MEASURED/training_h100.csv $MEASURED/training_mlperf.csv $MEASURED/training_megatron_bridge.csv \
    $MEASURED/training_simumax.csv --models dense --era 2023 "$@"
fit $NVIDIA $MEASURED/training_megatron_bridge.csv $MEASURED/training_simumax.csv --models experts --era 2025 --era 2026-02 \
    --era 2026-06 "$@"

# Serving with requests in flight: one partially pooled fit, a document for each chip, framework and kind of models.
fit $NVIDIA $MEASURED/serving_gpu.csv $MEASURED/inference_h100_reference.csv --pool --era 2026 --source aiconfigurator-095f58a

# Kernels: the same, a document for each chip and framework.
fit $NVIDIA $MEASURED/gemm_gpu.csv $MEASURED/matmul.csv $MEASURED/attention_prefill_gpu.csv $MEASURED/attention_decode_gpu.csv \
    $MEASURED/moe_gpu.csv --pool --era 2026 --source aiconfigurator-095f58a

# Collectives. Kernels of inference frameworks start from the fit to NCCL on the same chip, and rows of NCCL show how a library
# that was measured on one chip transfers to others.
collectives() {
    out=$1
    framework=$2
    software=$3
    source=$4
    shift 4
    fit $out "$@" --software "$software" --framework $framework --era 2026 --source $source
}
collectives catalog nccom 'Neuron collectives' xpu-perf-b841954 $MEASURED/collectives_neuron.csv $MEASURED/collectives_gpu.csv
GPU="$MEASURED/collectives_gpu.csv $MEASURED/collectives_nccl.csv"
collectives $NVIDIA nccl NCCL aiconfigurator-095f58a $GPU
collectives $NVIDIA vllm vLLM aiconfigurator-095f58a $GPU
collectives $NVIDIA sglang SGLang aiconfigurator-095f58a $GPU
collectives $NVIDIA trtllm TensorRT-LLM aiconfigurator-095f58a $GPU
