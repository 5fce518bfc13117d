"""Prepares what griffe has read of the package for the API reference.

* griffe keeps overloads beside the implementation that they belong to. A stub has none, so that `Socket.recv` would be
  missing from the page. The last overload, which carries the docstring in our stubs, stands for it here.
* A method or attribute without a docstring has that of the member it overrides, as in `help()`.
* An `Example:` is shown as code.
"""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^Example:\n((?:(?: .*)?\n?)*)", re.MULTILINE)


class Overloads(griffe.Extension):
    """Completes modules and classes while they are read, and docstrings afterwards."""

    def on_members(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Makes the last overload a member."""
        if not isinstance(obj, (griffe.Module, griffe.Class)):
            return
        for name, overloads in list(obj.overloads.items()):
            if name not in obj.members and overloads:
                function = overloads[-1]
                function.overloads = overloads[:-1]
                obj.set_member(name, function)
        # A native class is called with the arguments of `__new__`; griffe asks `__init__`.
        new = obj.members.get("__new__")
        if isinstance(new, griffe.Function) and "__init__" not in obj.members:
            init = griffe.Function("__init__", parameters=new.parameters, returns="None")
            obj.set_member("__init__", init)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Completes the docstrings of a package that was read."""
        complete(pkg)


def complete(item: griffe.Object) -> None:
    for member in list(item.members.values()):
        if isinstance(member, griffe.Alias):
            continue
        if isinstance(member, griffe.Class):
            take_parameters_of_new(member)
        if isinstance(member, (griffe.Function, griffe.Attribute)) and isinstance(
            item, griffe.Class
        ):
            inherit(member, item)
        if member.docstring is not None:
            member.docstring.value = EXAMPLE.sub(as_code, member.docstring.value)
        complete(member)


def take_parameters_of_new(cls: griffe.Class) -> None:
    """Griffe takes the parameters of a class from `__init__`; classes of the extension have `__new__`."""
    new = cls.members.get("__new__")
    if isinstance(new, griffe.Function) and "__init__" not in cls.members:
        init = griffe.Function("__init__", parameters=new.parameters, parent=cls)
        cls.set_member("__init__", init)


def inherit(member: griffe.Function | griffe.Attribute, cls: griffe.Class) -> None:
    """Gives a member without a docstring that of the first member that it overrides."""
    if member.docstring is not None or member.name.startswith("_"):
        return
    for base in cls.mro():
        overridden = base.members.get(member.name)
        if overridden is not None and not overridden.is_alias and overridden.docstring is not None:
            member.docstring = griffe.Docstring(
                overridden.docstring.value,
                parent=member,
                parser=overridden.docstring.parser,
                parser_options=overridden.docstring.parser_options,
            )
            return


def as_code(example: re.Match[str]) -> str:
    """Returns the section that griffe knows; a program without prompts is fenced, if its docstring has not done so."""
    code = example[1].rstrip("\n")
    if ">>>" not in code and "```" not in code:
        code = f"    ```python\n{code}\n    ```"
    return f"Examples:\n{code}\n"
