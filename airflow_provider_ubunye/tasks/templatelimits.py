"""How much one step of a template may make: checked before it is made, so that a slip does not fill the memory.

A text, list or number is *weighed*: its characters, with those of all that is in it. What a step gives is never
weighed exactly; a bound that is easy to compute is enough.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

LARGEST = 10_000_000
"""Characters that a step of a template may give."""

LARGEST_DONE = 1_000_000
"""Characters that a whole template may give."""

MOST_BITS = 100_000
"""Bits of a whole number that a step may give."""

# Each makes something as large as its value times its arguments: a width, a number of parts, a text put in.
_GROWING_FILTERS = frozenset(
    {
        "batch",
        "center",
        "format",
        "indent",
        "join",
        "replace",
        "round",
        "slice",
        "tojson",
        "urlize",
        "wordwrap",
        "xmlattr",
    }
)
_GROWING_METHODS = frozenset(
    {
        "center",
        "expandtabs",
        "format",
        "format_map",
        "join",
        "ljust",
        "replace",
        "rjust",
        "translate",
        "zfill",
    }
)
_FORMATS = frozenset({"format", "format_map"})
_NUMBER = re.compile(r"\d+")
# %*d and {:{}} take their width from the values; everywhere else a number among them is only shown.
_WIDTH_GIVEN = re.compile(r"%[^a-zA-Z%]*\*|\{[^{}]*\{")


class TooLarge(Exception):
    """A step of a template would give too much; the message is a sentence without any value."""

    def __init__(self, most: int = LARGEST) -> None:
        super().__init__(f"it gives more than {most:,} characters")


def check(size: int, most: int = LARGEST) -> None:
    """:raises TooLarge: ``size`` characters are more than ``most``."""
    if size > most:
        raise TooLarge(most)


def check_binop(operator: str, left: Any, right: Any) -> None:
    """Check what ``left <operator> right`` would give, for ``+``, ``*``, ``**`` and ``%``.

    :raises TooLarge: it is too much.
    """
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length()
        powers = operator == "**" and bits > 1
        if (bits * right if powers else bits + right.bit_length()) > MOST_BITS:
            raise TooLarge
    elif operator == "+":
        check(weight(left) + weight(right))
    elif operator == "*":
        for one, times in ((left, right), (right, left)):
            if isinstance(times, int):
                check(weight(one) * times)
    elif operator == "%" and isinstance(left, str):
        _check_format(left, right)


def limited(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that refuses, before it begins, to make too much."""
    if name not in _GROWING_FILTERS:
        return made
    first = 1 if hasattr(made, "jinja_pass_arg") else 0

    @functools.wraps(made)
    def checked(*args: Any, **named: Any) -> Any:
        # A filter's value may be something that is read only once.
        values = list(args)
        if (
            len(values) > first
            and isinstance(values[first], Iterable)
            and not isinstance(values[first], _SIZED)
        ):
            values[first] = list(values[first])
        _check_growth(name, values[first:], named)
        return made(*values, **named)

    return checked


def check_call(called: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Check what a method of a text would give.

    :raises TooLarge: it is too much.
    """
    # The sandbox wraps str.format; what it wraps is the method itself.
    method = getattr(called, "__wrapped__", called)
    text, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    if isinstance(text, str | bytes) and name in _GROWING_METHODS:
        _check_growth(name, [text, *args], named)


_SIZED = (str, bytes, list, tuple, set, frozenset, dict)


def weight(value: Any) -> int:
    """The characters in a value, with those of all that is in it; a number counts its digits, at least."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int):
        return value.bit_length() // 3 + 1
    if isinstance(value, Mapping):
        return sum(weight(k) + weight(v) + 4 for k, v in value.items())
    if isinstance(value, _SIZED):
        return sum(weight(one) + 2 for one in value)
    return 0


def _check_growth(name: str, values: list[Any], named: Mapping[str, Any]) -> None:
    value, more = values[:1], [*values[1:], *named.values()]
    if name in _FORMATS and value:
        _check_format(str(value[0]), more)
        return
    largest = max((abs(one) if isinstance(one, int) else weight(one) for one in more), default=0)
    check((sum(map(weight, value)) + 1) * (largest + 1))


def _check_format(text: str, values: Any) -> None:
    """A text with places, and what is put there: each as often as there are places, each as wide as any says."""
    places = text.count("%") + text.count("{") + 1
    widths = [int(found) for found in _NUMBER.findall(text)]
    if _WIDTH_GIVEN.search(text):
        widths += [abs(one) for one in _flat(values) if isinstance(one, int)]
    check(len(text) + places * (weight(values) + max(widths, default=0)))


def _flat(values: Any) -> Iterable[Any]:
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return [found for one in values for found in _flat(one)]
    return [values]
