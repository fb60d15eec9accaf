"""What the public headers declare: functions, structs, enums, constants, each with the words beside it.

Reads include/mixt as it is written, without a compiler: tools/interface.sh sees to it that the headers keep a simple form.
Anything that is not understood is an error, so that no declaration is lost without a word.
"""

import dataclasses
import pathlib
import re

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<macro>^[ \t]*\#(?:\\\n|[^\n])*)|(?P<space>\s+)|
    (?P<word>[A-Za-z_]\w*)|(?P<number>-?\d[\w.]*)|(?P<text>"(?:\\.|[^"\\])*")|(?P<mark>\.\.\.|.)""",
    re.S | re.M | re.X,
)


@dataclasses.dataclass
class Type:
    """A C type: its name ("int64_t", "mixt_step"), stars behind it, sizes of arrays, and what of it is const."""

    name: str
    stars: int = 0
    dims: tuple = ()
    sizes: tuple = ()  # the dims as they are written: "MIXT_DTYPE_COUNT"
    const: bool = False
    function: "Function | None" = None  # of a pointer to one


@dataclasses.dataclass
class Field:
    name: str
    type: Type
    words: str = ""


@dataclasses.dataclass
class Struct:
    name: str
    header: str
    words: str
    fields: "list | None"  # None: opaque


@dataclasses.dataclass
class Enum:
    name: str  # "": constants without a type
    header: str
    words: str
    values: list  # (name, number, words)


@dataclasses.dataclass
class Function:
    name: str
    header: str
    words: str
    result: Type
    arguments: list  # of Field
    varied: bool = False


class Headers:
    """All of include/mixt, each header behind those that it includes."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.structs, self.enums, self.functions, self.callbacks, self.constants, self.lists = {}, {}, {}, {}, {}, {}
        self.names, self.about = [], {}
        for path in sorted(self.root.glob("mixt/**/*.h")):
            self._read(path.relative_to(self.root).as_posix())

    def _read(self, name):
        if name in self.names or name in self.about:
            return
        text = (self.root / name).read_text(encoding="utf-8")
        self.about[name] = words_of(re.match(r"/\*.*?\*/", text, re.S).group(0))
        for other in re.findall(r'^#include "(mixt/[^"]+)"', text, re.M):
            self._read(other)
        self.names.append(name)
        Reader(self, name, text).run()

    def number(self, text):
        """The value of a constant expression, as headers have them."""
        text = re.sub(r"\bINT64_C\((\w+)\)", r"\1", text)
        text = re.sub(r"[A-Za-z_]\w*", lambda m: str(self.constants[m.group(0)]), text)
        if not re.fullmatch(r"[-+*/()<. \de]+", text):
            raise ValueError(f"no constant: {text}")
        return eval(text, {"__builtins__": {}})  # digits and operators alone


def words_of(comment):
    """The text of a comment, without its marks."""
    comment = re.sub(r"^/\*+<?|\*/$|^//", "", comment)
    return re.sub(r"[ \t]*\n[ \t]*\*?[ \t]?", "\n", comment).strip()


class Reader:
    def __init__(self, headers, name, text):
        self.headers, self.name = headers, name
        self.tokens, self.at = [], 0
        for m in TOKEN.finditer(text):
            if m.lastgroup == "macro":
                self._macro(m.group(0))
            if m.lastgroup not in ("space", "macro"):
                self.tokens.append((m.lastgroup, m.group(0)))

    def _macro(self, text):
        text = text.replace("\\\n", " ")
        rows = re.match(r"\s*#define (MIXT_\w+_LIST)\(X\)(.*)", text, re.S)
        plain = re.match(r"\s*#define (MIXT_\w+) +(\(?-?\d[^\n]*|INT64_C\(\d+\))$", text.strip())
        if rows:
            self.headers.lists[rows.group(1)] = [
                (n, int(v) if v else None, (w or "").strip())
                for n, v, w in re.findall(r'X\((\w+),(?: (\d+),)? "[^"]*"\)\s*(?:/\*(.*?)\*/)?', rows.group(2))
            ]
        elif plain:
            self.headers.constants[plain.group(1)] = self.headers.number(re.sub(r"/\*.*", "", plain.group(2)))

    def fault(self, what):
        near = " ".join(t for _, t in self.tokens[max(0, self.at - 6) : self.at + 10])
        raise SyntaxError(f"{self.name}: {what}: {near}")

    # ---- tokens ----

    def peek(self, ahead=0):
        i = self.at
        while i < len(self.tokens):
            if self.tokens[i][0] != "comment":
                if not ahead:
                    return self.tokens[i][1]
                ahead -= 1
            i += 1
        return ""

    def take(self, wanted=None):
        """The next token; comments before it are kept in self.words."""
        self.words = ""
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "comment":
            self.words = words_of(self.tokens[self.at][1]) if self.tokens[self.at][1].startswith("/**") else ""
            self.at += 1
        if self.at >= len(self.tokens):
            self.fault("ends too early")
        token = self.tokens[self.at][1]
        if wanted is not None and token != wanted:
            self.fault(f"expected {wanted!r}, found {token!r}")
        self.at += 1
        return token

    def behind(self):
        """The words of a comment that stands behind what was just read."""
        found = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "comment":
            if not self.tokens[self.at][1].startswith("/**<"):
                break
            found.append(words_of(self.tokens[self.at][1]))
            self.at += 1
        return " ".join(found)

    # ---- declarations ----

    def run(self):
        while self.peek():
            token = self.take()
            words = self.words
            if token == "extern" or token == "}":  # extern "C" {
                if token == "extern":
                    self.take(), self.take("{")
            elif token == "MIXT_API":
                self._function(words)
            elif token == "typedef":
                self._typedef(words)
            elif token == "enum":
                self._enum("", words)
                self.take(";")
            else:
                self.fault("not understood")

    def _base(self):
        const, name = False, ""
        while self.peek() in ("const", "struct", "enum"):
            const |= self.take() == "const"
        name = self.take()
        if self.peek() == "const":
            const |= bool(self.take())
        return Type(name, const=const)

    def _declarator(self, base):
        """Name and type of what follows a base type: stars, a name, dims; or a pointer to a function."""
        kind = dataclasses.replace(base)
        while self.peek() in ("*", "const"):
            kind.stars += self.take() == "*"
        if self.peek() == "(":  # (*name)(arguments)
            self.take(), self.take("*")
            name = self.take()
            self.take(")")
            function = Function(name, self.name, "", kind, self._arguments())
            return name, Type("", function=function)
        name = self.take()
        while self.peek() == "[":
            self.take()
            size = []
            while self.peek() != "]":
                size.append(self.take())
            self.take("]")
            kind.dims += (int(self.headers.number(" ".join(size))) if size else 0,)
            kind.sizes += (" ".join(size),)
        return name, kind

    def _arguments(self):
        self.take("(")
        found = []
        if self.peek() == "void" and self.peek(1) == ")":
            self.take()
        while self.peek() != ")":
            if self.peek() == "...":
                self.take()
                found.append(None)
            else:
                found.append(Field(*self._declarator(self._base())))
            if self.peek() == ",":
                self.take()
        self.take(")")
        return found

    def _function(self, words):
        base = self._base()
        while self.peek() in ("*", "const"):
            base.stars += self.take() == "*"
        name = self.take()
        arguments = self._arguments()
        while self.peek() != ";":  # MIXT_PRINTF(2, 3)
            self.take()
        self.take(";")
        words = words or self.behind()
        varied = None in arguments
        arguments = [a for a in arguments if a is not None]
        self.headers.functions[name] = Function(name, self.name, words, base, arguments, varied)

    def _typedef(self, words):
        if (
            self.peek() in ("struct", "enum")
            and self.peek(2) in ("{", ";")
            or self.peek(1).startswith("mixt_")
            and self.peek()
            in (
                "struct",
                "enum",
            )
        ):
            kind, name = self.take(), self.take()
            if kind == "enum":
                self._enum(name, words)
            elif self.peek() == "{":
                self._struct(name, words)
            elif name not in self.headers.structs:
                self.headers.structs[name] = Struct(name, self.name, words, None)
            self.take(name)
            self.take(";")
            return
        base = self._base()
        while self.peek() == "*":
            self.take()
            base.stars += 1
        pointer = self.peek() == "("
        if pointer:
            self.take(), self.take("*")
        name = self.take()
        if pointer:
            self.take(")")
        self.headers.callbacks[name] = (Function(name, self.name, words, base, self._arguments()), pointer)
        self.take(";")

    def _enum(self, name, words):
        self.take("{")
        values, next_number = [], 0
        while self.peek() != "}":
            token = self.take()
            if self.peek() == "(":  # MIXT_STATUS_LIST(MIXT_STATUS_ENUM)
                self.take(), self.take(), self.take(")")
                prefix = token[: -len("_LIST")] if token != "MIXT_STATUS_LIST" else "MIXT"
                for row, number, about in self.headers.lists[token]:
                    next_number = number if number is not None else next_number
                    values.append((f"{prefix}_{row}", next_number, about))
                    next_number += 1
                continue
            if self.peek() == "=":
                self.take()
                number = []
                while self.peek() not in (",", "}"):
                    number.append(self.take())
                next_number = self.headers.number(" ".join(number))
            if self.peek() == ",":
                self.take()
            values.append((token, int(next_number), self.behind()))
            self.headers.constants[token] = int(next_number)
            next_number += 1
        self.take("}")
        for value, number, _ in values:
            self.headers.constants[value] = number
        self.headers.enums[name or f"{self.name}:{values[0][0]}"] = Enum(name, self.name, words, values)

    def _struct(self, name, words):
        self.take("{")
        fields = []
        while self.peek() != "}":
            base = self._base()
            above = self.words
            first = len(fields)
            while True:
                fields.append(Field(*self._declarator(base)))
                if self.take() == ";":
                    break
            about = self.behind() or above
            for field in fields[first:]:
                field.words = about
        self.take("}")
        self.headers.structs.pop(name, None)  # in the order in which they are whole
        self.headers.structs[name] = Struct(name, self.name, words, fields)
