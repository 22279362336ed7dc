"""What programs say that their own operators compute, as operators beside them that replay finds by name (replay/trace/operators.h)."""

from __future__ import annotations

import torch

_SPACE = "nanquest_reference"
_library = None


def register(operator: str):
    global _library
    name, _, overload = operator.partition(".")
    try:
        schema = torch._C._get_schema(name, overload)
    except RuntimeError:
        raise ValueError(f"nanquest.reference: there is no operator {operator}; it must be defined before") from None
    text = str(schema)
    mangled = name.replace("::", "__") + (f".{overload}" if overload else "")

    def keep(function):
        global _library
        if _library is None:
            _library = torch.library.Library(_SPACE, "FRAGMENT")
        _library.define(mangled + text[text.index("("):])
        _library.impl(mangled, function, "CompositeExplicitAutograd")
        return function
    return keep
