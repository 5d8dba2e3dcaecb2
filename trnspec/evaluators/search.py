"""The best layouts of a training step, or deployments for serving, on some systems, of all that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.searching.reduction import reduced
from trnspec.evaluators.searching.report import report
from trnspec.evaluators.searching.space import search_of
from trnspec.evaluators.searching.training import LAYOUT, training_question

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Evaluation

__all__ = ["LAYOUT", "SearchQuestion", "run", "training_question"]


def run(catalog: Catalog, question: SearchQuestion) -> Evaluation:
    """Search for the best layouts of a training step, or deployments for serving, by evaluating all that fit in memory.

    With seq and global_batch it is a training step. Degrees that are not given are the divisors of the number of ranks; data
    parallelism takes the remaining ranks, and stages have different numbers of layers where these do not divide. All ZeRO
    stages are evaluated, recompute none and full, without flash attention also selective, and sequence parallelism with
    tensor parallelism; the interleaved schedule with 2, 4 and 8 model chunks per stage. Else it is serving: all tensor,
    pipeline and expert-parallel degrees, and batch sizes in powers of two. An input such as --tp 4,8 limits the search to these
    values. Several systems are searched together; bounds are ranked by themselves, after estimates.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        UsageError: An input is missing, or belongs to the other mode.
        RefusalError: Nothing fits or meets the condition, or a figure is not published.

    Examples:
        The three fastest layouts of Llama 3.1 70B on 16 Trn2 servers:

            trnspec search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --top 3

        The same without pipeline parallelism, with ZeRO stage 1:

            trnspec search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --pp 1 --zero 1

        The most output tokens per second and chip with a time per output token below 30 ms:

            trnspec search --model llama-3.1-70b --on trn2.48xlarge --prompt 4096 --output 512
            --where 'tpot < 30 ms'
    """
    search = search_of(catalog, question)
    return report(catalog, search, reduced(search))
