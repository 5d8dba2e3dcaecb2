"""The built-in kinds of documents as values of the plugin interface."""

from __future__ import annotations

from trnspec.model.kinds import BUILTIN, spec_of
from trnspec.plugins.api import Kind


class BuiltinKind(Kind):
    """A kind whose class is imported when it is used."""

    __slots__ = ()

    @property
    def spec(self) -> type:
        """The frozen attrs class of ``spec:``."""
        return spec_of(self.name)


def _kind(name: str, folder: str) -> Kind:
    kind = object.__new__(BuiltinKind)
    object.__setattr__(kind, "name", name)
    object.__setattr__(kind, "folder", folder)
    return kind


KINDS = tuple(_kind(name, folder) for name, (folder, _) in BUILTIN.items())
