"""Lets the API reference show functions that a stub declares by overloads only.

griffe keeps overloads beside the implementation that they belong to. A stub has none, so that `Socket.recv` would be
missing from the page. The last overload, which carries the docstring in our stubs, stands for it here.
"""

from typing import Any

import griffe


class Overloads(griffe.Extension):
    """Makes the last overload a member."""

    def on_members(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if not isinstance(obj, (griffe.Module, griffe.Class)):
            return
        for name, overloads in list(obj.overloads.items()):
            if name not in obj.members and overloads:
                function = overloads[-1]
                function.overloads = overloads[:-1]
                obj.set_member(name, function)
