"""The kinds of documents that trnspec itself knows, as a plugin tells them."""

from __future__ import annotations

from trnspec.model.kinds import BUILTIN, spec_of
from trnspec.plugins.api import Kind

KINDS = tuple(Kind(name, folder, spec_of(name)) for name, (folder, _) in BUILTIN.items())
