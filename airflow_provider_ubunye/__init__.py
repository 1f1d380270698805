"""Batches that are safe to run again.

Importing this package costs milliseconds: a public name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

# Public name -> module that defines it. Adding a line here is all it takes to publish a name.
_PUBLIC: dict[str, str] = {}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 - the names of a dict are strings


def __getattr__(name: str) -> object:
    """Load the module that defines the public name ``name``; AttributeError for any other."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
