"""nanquest.reference(): plain PyTorch functions for the program's own operators. They become operators with names that replay knows
(replay/trace/operators.h)."""

from __future__ import annotations

import torch

from ..base.say import say
from ..pytorch import private

_SPACE = "nanquest_reference"
_libraries = {}  # name -> library object, which keeps its definition


def register(operator: str):
    """The decorator. ValueError if there is no such operator. Any other failure is printed and does not affect the program."""
    if private.schema_of is None:
        say(f"the reference of {operator} is not kept: this PyTorch does not say what an operator is given")
        return lambda function: function
    name, _, overload = operator.partition(".")
    try:
        schema = private.schema_of(name, overload)
    except RuntimeError:
        raise ValueError(f"nanquest.reference: there is no operator {operator}; it must be defined before") from None
    mangled = name.replace("::", "__") + (f".{overload}" if overload else "")
    signature = str(schema)

    def keep(function):
        try:
            if mangled in _libraries:  # from a module that was loaded again
                _libraries.pop(mangled)._destroy()
            library = _libraries[mangled] = torch.library.Library(_SPACE, "FRAGMENT")
            library.define(mangled + signature[signature.index("(") :])
            library.impl(mangled, function, "CompositeExplicitAutograd")
        except Exception as error:  # noqa: BLE001
            say(f"the reference of {operator} is not kept: {type(error).__name__}: {str(error)[:200]}")
        return function

    return keep
