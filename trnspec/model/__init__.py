"""The vocabulary: frozen classes that know nothing of YAML, schemas or files.  One module per kind."""
