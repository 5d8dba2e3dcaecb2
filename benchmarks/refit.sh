#!/bin/sh
# Fits every shipped calibration anew, one command for each; about five minutes. `make calibrations` runs it.
#
# TRNSPEC is the command, OUT a folder to write to instead of the catalogs.
set -eu
cd "$(dirname "$0")/.."
TRNSPEC=${TRNSPEC:-.venv/bin/trnspec}
NVIDIA=plugins/trnspec-nvidia/src/trnspec_nvidia/catalog
INFERENTIA=plugins/trnspec-inferentia/src/trnspec_inferentia/catalog
MEASURED=catalog/measured

fit() {
    out=$1
    shift
    echo "calibrate $*"
    $TRNSPEC calibrate "$@" --out "${OUT:-$out}" --force --catalog $NVIDIA --catalog $INFERENTIA | grep '^wrote'
}

# AWS. Optimum Neuron's rows widen the interval of serving and are not fitted.
fit catalog $MEASURED/training_trn1.csv --software Neuron --framework nxd --era 2024 --name neuron --source neuron-benchmarks-2026-08
set -- $MEASURED/inference_neuron.csv --only '^(trn1|inf2)-' --also '^optimum-' --software 'Transformers NeuronX' --framework transformers-neuronx --era 2024 \
    --name neuron-decode --source neuron-benchmarks-2026-08
fit catalog "$@" --document trainium1 --document trainium2 --document trainium3
fit $INFERENTIA "$@" --document inferentia2

# NVIDIA. Rows of ZeRO-3 with the DeepSpeed of 2021 are not those of Megatron-LM. Dense models for the chips without rows.
PTD='sc21-(t1|t2-PTD-P)'
fit $NVIDIA $MEASURED/training_mpt.csv --chip a100-40gb --chip a100-80gb --software 'LLM Foundry' --framework llm-foundry --era 2023 --name llm-foundry \
    --source llm-foundry-benchmarking
fit $NVIDIA $MEASURED/training_mpt.csv --chip h100-sxm --software 'LLM Foundry' --framework llm-foundry --era 2023 --name llm-foundry \
    --source llm-foundry-benchmarking
fit $NVIDIA $MEASURED/training_megatron_sc21.csv --only "^$PTD" --software Megatron-LM --framework megatron --era 2021 --name megatron-lm \
    --source megatron-lm-2021-08
fit $NVIDIA $MEASURED/training_megatron_bridge.csv --chip b200 --chip b300 --chip gb200 --chip gb300 \
    --software 'Megatron Bridge' --framework megatron --era 2026 --name megatron-bridge --source megatron-bridge-2026-08
fit $NVIDIA $MEASURED/training_torchtitan.csv --software torchtitan --framework torchtitan --era 2024 --name torchtitan \
    --source torchtitan-llama3-h100-2024-12
fit $NVIDIA $MEASURED/training_megatron_sc21.csv $MEASURED/training_megatron_bridge.csv \
    $MEASURED/training_torchtitan.csv --only "^($PTD|titan-|mbridge.*LLAMA)" --software 'Megatron and torchtitan' --framework megatron --era 2026 \
    --name megatron --source megatron-bridge-2026-08 --document h100-sxm --document h200
fit $NVIDIA $MEASURED/training_a100_vtrain.csv --software Megatron-DeepSpeed --framework deepspeed --era 2022 --name megatron-deepspeed --source vtrain-2024
