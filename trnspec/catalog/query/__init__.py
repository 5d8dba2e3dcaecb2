"""The query language: ``tree`` (syntax tree), ``parser``, ``check`` (names and dimensions), ``run``."""
