"""The query language: ``tree`` (AST), ``parser``, ``check`` (names and dimensions), ``run``."""
