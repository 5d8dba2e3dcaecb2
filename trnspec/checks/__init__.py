"""Cross-checks: ``rules`` by subject, ``reconcile`` (why figures disagree), ``codes`` (explanations), ``runner``."""
