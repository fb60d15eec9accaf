#!/usr/bin/env python3
"""Makes the Python package: what python/mixt holds, and modules that are made of the public headers, so that there is one truth.

    c.py, c.pyi   every function, struct and constant, for ctypes
    results.py    a dataclass for each struct that functions fill in
    options.py    for each struct of options a TypedDict of its keywords
    calls.py      a method for each function of the builder

Usage: python_binding.py OUT [LIBRARY]: writes OUT/mixt, with lib/libmixt.so.0 there a link to LIBRARY.
"""

import keyword
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import headers as h  # noqa: E402

SCALARS = {
    "bool": ("c_bool", "bool"),
    "float": ("c_float", "float"),
    "double": ("c_double", "float"),
    "int": ("c_int", "int"),
    "unsigned": ("c_uint", "int"),
    "size_t": ("c_size_t", "int"),
    "char": ("c_char", "bytes"),
}
SCALARS.update({f"{u}int{n}_t": (f"c_{u}int{n}", "int") for u in ("", "u") for n in (8, 16, 32, 64)})
MADE = '# Made by tools/python_binding.py of the public headers: changes go there.\n"""%s"""\n'


def camel(name):
    """mixt_run_result: RunResult."""
    return "".join(part.capitalize() for part in name.removeprefix("mixt_").split("_"))


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def quoted(words, indent):
    """Words as a docstring."""
    text = words.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = "\n".join((indent + line).rstrip() if i else line for i, line in enumerate(text.split("\n")))
    return f'"""{text}{" " if text.endswith(chr(34)) else ""}"""'


class Types:
    """C types in ctypes' words and in Python's."""

    def __init__(self, headers):
        self.headers = headers

    def is_opaque(self, name):
        struct = self.headers.structs.get(name)
        return struct is not None and struct.fields is None

    def is_struct(self, name):
        struct = self.headers.structs.get(name)
        return struct is not None and struct.fields is not None

    def is_enum(self, name):
        return name in self.headers.enums

    def function(self, f):
        """A callback's type. What is passed by value is one number there: mixt_value."""
        kinds = [self.ctype(k, True) for k in [f.result] + [a.type for a in f.arguments]]
        return f"_c.CFUNCTYPE({', '.join(kinds)})"

    def ctype(self, kind, argument=False):
        if kind.function:
            return self.function(kind.function)
        stars = kind.stars + (1 if argument and kind.dims else 0)
        name = kind.name
        if name in self.headers.callbacks:
            return name
        if name == "char" and stars:
            made, stars = ("_c.c_char_p" if kind.const else "_c.c_void_p"), stars - 1
        elif name == "void" and stars or self.is_opaque(name):
            made, stars = "_c.c_void_p", stars - 1
        elif name == "void":
            made = "None"
        elif self.is_enum(name):
            made = "_c.c_int"
        elif self.is_struct(name):
            made = "_c.c_int32" if argument == "callback" and not stars else name
        else:
            made = "_c." + SCALARS[name][0]
        for _ in range(stars):
            made = f"_c.POINTER({made})"
        for size in reversed(kind.dims if not argument else kind.dims[1:]):
            made = f"({made} * {size})"
        return made

    def hint(self, kind, argument=False):
        """The same for mypy, in c.pyi."""
        if kind.function or kind.dims or kind.name in self.headers.callbacks:
            return "Any"
        if kind.name == "char" and kind.stars == 1:
            return "bytes | None" if kind.const else "int | None"
        if kind.stars == 1 and (kind.name == "void" or self.is_opaque(kind.name)):
            return ("bytes | Handle" if kind.name == "void" else "Handle") if argument else "int | None"
        if kind.stars:
            return "Any"
        if kind.name == "void":
            return "None"
        if self.is_enum(kind.name):
            return "int"
        return kind.name if self.is_struct(kind.name) else SCALARS[kind.name][1]

    # ---- plain Python values ----

    def words_of_enum(self, name):
        """The words for an enum's values, what all have in front of it left out."""
        values = [v for v, _, _ in self.headers.enums[name].values]
        common = os.path.commonprefix(values)
        common = common[: common.rfind("_") + 1]
        return {number: value[len(common) :].lower() for value, number, _ in self.headers.enums[name].values}

    def plain(self, field):
        """Of a field of a result: its Python type, or None where it has none."""
        kind = field.type
        if kind.function or kind.name in self.headers.callbacks:
            return None
        if kind.name == "char" and kind.stars == 1:
            made = "str | None" if not kind.dims else "str"
        elif kind.stars:
            return None
        elif self.is_enum(kind.name):
            made = "str"
        elif self.is_struct(kind.name):
            made = camel(kind.name)
        elif self.is_opaque(kind.name) or kind.name == "void":
            return None
        else:
            made = SCALARS[kind.name][1]
        if kind.sizes and kind.sizes[0] in ("MIXT_DTYPE_COUNT", "MIXT_WORK_COUNT"):
            made = f"dict[str, {made if len(kind.dims) == 1 else 'dict[str, ' + made + ']'}]"
        elif kind.dims:
            made = f"tuple[{made}, ...]"
        return made

    def keyword_type(self, field):
        """Of a field of options: what Python code gives for it."""
        kind = field.type
        if kind.name == "mixt_progress_fn":
            return "Callable[[Any], bool | None] | None"
        if kind.function or kind.name in self.headers.callbacks:
            return None
        if kind.name == "char":
            return "str | os.PathLike[str] | None" if kind.stars == 1 else "Sequence[str] | Mapping[str, Any] | None"
        if self.is_enum(kind.name):
            return "str | int"
        if kind.name == "mixt_value":
            return "Value | None"
        if kind.name in ("mixt_policy", "mixt_data"):
            return f'{"Policy" if kind.name == "mixt_policy" else "Data"} | None'
        if kind.name not in SCALARS:
            return None
        made = SCALARS[kind.name][1]
        return f"Sequence[{made}] | None" if kind.dims or kind.stars else made


class Writer:
    def __init__(self, root, out):
        self.headers = h.Headers(root / "include")
        self.types = Types(self.headers)
        self.out = out

    def write(self, name, lines):
        (self.out / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    # ---- c.py ----

    def c(self):
        types, headers = self.types, self.headers
        whole = [s for s in headers.structs.values() if s.fields is not None]
        lines = [
            MADE % "mixt's C interface as it is: see the headers, mixt/mixt.h.",
            "import ctypes as _c",
            "import enum as _enum",
            "",
        ]
        lines += ["from ._library import library as _library", ""]
        for name, value in headers.constants.items():
            lines.append(f"{name} = {value!r}")
        for enum in headers.enums.values():
            if enum.name:
                lines += [
                    "",
                    "",
                    f"class {enum.name}(_enum.IntEnum):",
                    f"    {quoted(enum.words or enum.name, '    ')}",
                    "",
                ]
                lines += [f"    {value} = {number}" for value, number, _ in enum.values]
        for struct in whole:
            lines += [
                "",
                "",
                f"class {struct.name}(_c.Structure):",
                f"    {quoted(struct.words or struct.name, '    ')}",
            ]
        lines += ["", ""]
        value = headers.structs["mixt_value"]
        for name, (function, _) in headers.callbacks.items():
            lines.append(f"{name} = {types.function(self._by_number(function))}")
        for struct in [value] + [s for s in whole if s is not value]:
            fields = ", ".join(f'("{f.name}", {types.ctype(f.type)})' for f in struct.fields)
            lines.append(f"{struct.name}._fields_ = [{fields}]")
        lines += ["", "", "def _bind(name, result, arguments, words):", "    function = getattr(_library, name)"]
        lines += [
            "    function.restype, function.argtypes, function.__doc__ = result, arguments, words",
            "    globals()[name] = function",
        ]
        lines += ["", ""]
        for f in headers.functions.values():
            arguments = "".join(types.ctype(a.type, True) + ", " for a in f.arguments)
            lines.append(f"_bind({f.name!r}, {types.ctype(f.result)}, ({arguments}), {f.words!r})")
        self.write("c.py", lines)

    def _by_number(self, function):
        """mixt_value by value: ctypes gives and takes numbers there."""
        swap = lambda k: h.Type("int32_t") if k.name == "mixt_value" and not k.stars else k  # noqa: E731
        arguments = [h.Field(a.name, swap(a.type)) for a in function.arguments]
        return h.Function(function.name, "", "", swap(function.result), arguments)

    def c_stub(self):
        types, headers = self.types, self.headers
        lines = [
            MADE % "mixt's C interface as it is: see the headers, mixt/mixt.h.",
            "import ctypes as _c",
            "import enum as _enum",
        ]
        lines += ["from typing import Any, Union", "", "Handle = Union[_c.c_void_p, int, None]", "_Bytes = bytes", ""]
        lines += [f"{name}: {type(value).__name__}" for name, value in headers.constants.items()]
        lines += [f"{name}: Any" for name in headers.callbacks]
        for enum in headers.enums.values():
            if enum.name:
                lines += ["", f"class {enum.name}(_enum.IntEnum):"] + [f"    {v} = {n}" for v, n, _ in enum.values]
        for struct in headers.structs.values():
            if struct.fields is not None:
                lines += ["", f"class {struct.name}(_c.Structure):"]
                lines += [
                    f"    {f.name}: {types.hint(f.type).replace('bytes |', '_Bytes |')}"
                    for f in struct.fields
                    if not keyword.iskeyword(f.name)
                ]
        lines.append("")
        for f in headers.functions.values():
            arguments = ", ".join(f"{python_name(a.name)}: {types.hint(a.type, True)}" for a in f.arguments)
            more = ", *more: Any" if f.varied else ""
            lines.append(f"def {f.name}({arguments}{more}) -> {types.hint(f.result)}: ...")
        self.write("c.pyi", lines)

    # ---- results.py, options.py ----

    def results(self):
        lines = [MADE % "What functions of mixt find out: plain values, as the structs of the headers have them."]
        lines += ["from __future__ import annotations", "", "import dataclasses", "", "from . import c as _c", ""]
        enums = {e.name: self.types.words_of_enum(e.name) for e in self.headers.enums.values() if e.name}
        lines += [f"WORDS: dict[str, dict[int, str]] = {enums!r}", "", "OF: dict[type, type] = {}"]
        names = []
        for struct in self.headers.structs.values():
            if (
                struct.fields is None
                or struct.name.endswith("_options")
                or "dlpack" in struct.name
                or struct.name == "mixt_value"
            ):
                continue
            fields = [(f, self.types.plain(f)) for f in struct.fields]
            fields = [(f, kind) for f, kind in fields if kind and f.name != "struct_size"]
            if not fields:
                continue
            names.append(struct.name)
            lines += ["", "", "@dataclasses.dataclass(frozen=True)", f"class {camel(struct.name)}:"]
            lines += [f"    {quoted(struct.words or struct.name, '    ')}", ""]
            for f, kind in fields:
                lines.append(f"    {python_name(f.name)}: {kind}")
                if f.words:
                    lines.append(f"    {quoted(f.words, '    ')}")
        lines += ["", "", "OF.update({"] + [f"    _c.{n}: {camel(n)}," for n in names] + ["})"]
        kinds = {}
        for name in names:  # what a number in a field stands for
            for f in self.headers.structs[name].fields:
                if self.types.is_enum(f.type.name):
                    kinds[f"{name}.{f.name}"] = f.type.name
                if f.type.sizes and f.type.sizes[0] in ("MIXT_DTYPE_COUNT", "MIXT_WORK_COUNT"):
                    keys = [s[:-6].lower() for s in f.type.sizes]
                    kinds[f"{name}.{f.name}[]"] = " ".join(keys)
        lines += ["", f"KINDS: dict[str, str] = {kinds!r}"]
        self.write("results.py", lines)

    def keywords(self, struct):
        """Keywords of a struct of options: (name, field, type); those of a struct within it are its own."""
        for f in struct.fields:
            if f.name in ("struct_size", "user"):
                continue
            if self.types.is_struct(f.type.name) and f.type.name != "mixt_value" and not f.type.stars:
                yield from self.keywords(self.headers.structs[f.type.name])
                continue
            kind = self.types.keyword_type(f)
            if kind:
                yield f.name, f, kind

    def options(self):
        lines = [MADE % "Keywords of mixt's functions, as the structs of options in the headers have them."]
        lines += [
            "from __future__ import annotations",
            "",
            "import os",
            "from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence",
            "",
        ]
        lines += ["if TYPE_CHECKING:", "    from typing_extensions import TypedDict", "    from .builder import Value"]
        lines += [
            "    from .data import Data",
            "    from .policy import Policy",
            "else:",
            "    from typing import TypedDict",
            "",
        ]
        for struct in self.headers.structs.values():
            if struct.fields is None or not struct.name.endswith("_options"):
                continue
            lines += ["", f"class {camel(struct.name)}(TypedDict, total=False):"]
            lines += [f"    {quoted(struct.words or struct.name, '    ')}", ""]
            for name, f, kind in self.keywords(struct):
                lines.append(f"    {python_name(name)}: {kind}")
                if f.words:
                    lines.append(f"    {quoted(f.words, '    ')}")
            lines.append("")
        kinds = {}
        for struct in self.headers.structs.values():
            for f in struct.fields or ():
                if self.types.is_enum(f.type.name):
                    kinds[f"{struct.name}.{f.name}"] = f.type.name
        lines += [f"ENUMS: dict[str, str] = {kinds!r}"]
        self.write("options.py", lines)

    # ---- calls.py ----

    def calls(self):
        lines = [
            MADE % "Ops and layers as methods of the builder, one for each function of mixt/graph.h and mixt/loss.h."
        ]
        lines += [
            "from __future__ import annotations",
            "",
            "from typing import TYPE_CHECKING, Any, Sequence",
            "",
            "from . import c as _c",
            "",
        ]
        lines += [
            "if TYPE_CHECKING:",
            "    from .builder import Value",
            "",
            "",
            "class Calls:",
            '    """Methods of Builder."""',
            "",
        ]
        lines += [
            "    def _call(self, function: Any, arguments: tuple[Any, ...], struct: Any, options: dict[str, Any]) -> Value:"
        ]
        lines += ["        raise NotImplementedError"]
        for f in self.headers.functions.values():
            if f.header not in ("mixt/graph.h", "mixt/loss.h") or f.result.name != "mixt_value" or f.result.stars:
                continue
            method = self._method(f)
            if method:
                lines += [""] + method
        self.write("calls.py", lines)

    def _method(self, f):
        plain, struct = [], None
        for a in f.arguments[1:]:
            if a.type.name == "mixt_value" and not a.type.stars:
                plain.append((a.name, "Value"))
            elif a.type.name == "char" and a.type.stars == 1:
                optional = a.name == "name" and "NULL" in f.words
                plain.append((a.name, "str | None = None" if optional else "str"))
            elif self.types.is_enum(a.type.name):
                plain.append((a.name, "str"))
            elif a.type.name in SCALARS and not a.type.stars and not a.type.dims:
                plain.append((a.name, SCALARS[a.type.name][1]))
            elif a.type.name.endswith("_options"):
                struct = self.headers.structs[a.type.name]
            else:
                return None  # builder.py has it, by hand
        name = python_name(f.name.removeprefix("mixt_").removesuffix("_with"))
        keywords = list(self.keywords(struct)) if struct else []
        arguments = [f"{python_name(n)}: {kind}" for n, kind in plain]
        arguments += [f"{python_name(n)}: {kind.removesuffix(' | None')} | None = None" for n, _, kind in keywords]
        words = f.words
        if keywords:
            words += "\n\n" + "\n".join(f"{n}: {' '.join(k.words.split()) or 'default: off'}" for n, k, _ in keywords)
        taken = "".join(f"{python_name(n)}, " for n, _ in plain)
        given = ", ".join(f'"{n}": {python_name(n)}' for n, _, _ in keywords)
        return [
            (
                f"    def {name}(self, {', '.join(arguments)}) -> Value:"
                if arguments
                else f"    def {name}(self) -> Value:"
            ),
            f"        {quoted(words or name, '        ')}",
            f"        return self._call(_c.{f.name}, ({taken}), {'_c.' + struct.name if struct else 'None'}, {{{given}}})",
        ]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    out = pathlib.Path(sys.argv[1]) / "mixt"
    if out.exists():
        shutil.rmtree(out)
    (out / "lib").mkdir(parents=True)
    for path in (root / "python" / "mixt").iterdir():
        if path.is_file():
            shutil.copy(path, out / path.name)
    writer = Writer(root, out)
    for make in (writer.c, writer.c_stub, writer.results, writer.options, writer.calls):
        make()
    version = [writer.headers.constants[f"MIXT_VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH")]
    writer.write("_version.py", [f'__version__ = "{version[0]}.{version[1]}.{version[2]}"'])
    if len(sys.argv) > 2:
        (out / "lib" / "libmixt.so.0").symlink_to(pathlib.Path(sys.argv[2]).resolve())


if __name__ == "__main__":
    main()
