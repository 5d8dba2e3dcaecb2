"""The built-in kinds of documents as values of the plugin interface."""

from __future__ import annotations

from trnspec.model.kinds import BUILTIN, spec_of
from trnspec.plugins.api import Kind

KINDS = tuple(Kind(name, folder, spec_of(name)) for name, (folder, _) in BUILTIN.items())
