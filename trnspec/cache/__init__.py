"""The verdicts of earlier runs of ``trnspec validate``, and everything that each of them depends on."""
