"""A chip, its source and a server of it, by a vendor that does not exist."""

PAGE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: acme-page, title: Acme}
spec: {publisher: Acme, as_of: 2026-01, rank: vendor-chip-page}
"""
CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: acme-1, title: Acme 1, aliases: [acme], source: acme-page}
spec:
  peak: {dense: {bf16: 400 TFLOPS}}
  memory: {capacity: 64 GiB, bandwidth: 2 TB/s}
"""
SERVER = """\
api_version: trnspec/v1
kind: Server
metadata: {name: acme-server, title: Acme, source: acme-page}
spec:
  chips: {chip: acme-1, count: 8}
  stated: {memory: {capacity: 512 GiB}}
"""
ACME = {"sources/acme-page.yaml": PAGE, "chips/acme-1.yaml": CHIP}
