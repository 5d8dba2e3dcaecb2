"""The global batch of a training run: the optimal one, and numbers near it that the ranks divide."""

from __future__ import annotations

import math

BATCH_FACTOR, BATCH_EXPONENT = 0.58, 0.571
"""Tokens per step where no global batch is given: ``0.58 tokens^0.571``, Step Law (Li et al. 2025, arXiv 2503.04715).

It depends on the tokens of the run and hardly on the size of the model: 4 M for 1 T tokens, 15 M for 10 T. Llama 3 405B had
16 M for 15.6 T tokens (arXiv 2407.21783, table 4).
"""
BATCH_TOLERANCE = 0.05
"""The share by which the global batch of a plan may differ from one that is given.

Papers round batches: 4 M tokens are 4,194,304, 4.9 % more than 4,000,000, and 1,538 sequences on 96 GPUs (GPT-NeoX-20B, arXiv
2204.06745) are not a whole number for each of 12 replicas. Frameworks need whole numbers.
"""
MOST_BATCH = 1000
"""Factor by which a global batch may exceed the optimal one; tokens given instead of sequences exceed it by about the sequence length."""


def optimal_batch(tokens: float, seq: int) -> int:
    """The power of two next to the global batch with the lowest loss [sequences]."""
    return 1 << max(0, round(math.log2(BATCH_FACTOR * tokens**BATCH_EXPONENT / seq)))


def default_batches(optimal: int, ranks: int) -> tuple[int, ...]:
    """The default global batches of a run, as numbers that some ranks divide evenly [sequences].

    Where the ranks are not a power of two, there may be two: as many replicas divide the first as leave each at least two
    sequences, and as leave each one the second. They are within a third of the default, whose optimum is broad.
    """
    units = [_replicas(most, ranks) for most in (optimal // 2, optimal)]
    return tuple(dict.fromkeys(max(1, round(optimal / unit)) * unit for unit in units))


def given_batches(batch: int, ranks: int) -> tuple[int, ...]:
    """A global batch that is given, and where the ranks do not divide it well, the nearest one that they do [sequences].

    That is the multiple of as many replicas as possible which differs by at most :data:`BATCH_TOLERANCE`.
    """
    unit = _replicas(batch, ranks)
    while unit % 2 == 0 and abs(round(batch / unit) * unit - batch) > BATCH_TOLERANCE * batch:
        unit //= 2
    near = round(batch / unit) * unit
    return (batch, near) if 0 < abs(near - batch) <= BATCH_TOLERANCE * batch else (batch,)


def _replicas(most: int, ranks: int) -> int:
    """The most replicas up to a number, or a few more, that divide some ranks: their odd part times a power of two."""
    odd = ranks // (ranks & -ranks)
    return odd << max(0, (min(most, ranks) // odd).bit_length() - 1)
