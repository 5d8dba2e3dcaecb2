"""A chip and a server of four of them."""

from tests.support.rules import document, source

PAGE = source("page", "2024-01-01")
CHIP = document(
    "Chip",
    "part",
    "spec: {peak: {dense: {bf16: 100 TFLOPS}}, memory: {capacity: 32 GiB, bandwidth: 1 TB/s}}",
    "source: page",
)
SERVER = document("Server", "whole", "spec: {chips: {chip: part, count: 4}}", "source: page")
