"""What all objects of the package share: errors, handles with an owner and a lock, options, values out of structs."""

from __future__ import annotations

import ctypes
import dataclasses
import difflib
import os
import threading
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping, NoReturn, Sequence, TypeVar

from . import c, options, results

Status = c.mixt_status
_H = TypeVar("_H", bound="Handle")


class Error(Exception):
    """What mixt refuses or fails at, in its own words. `status` says what kind of failure it is."""

    def __init__(self, text: str, status: int = int(Status.MIXT_ERROR_ARGUMENT)) -> None:
        super().__init__(text)
        self.status = Status(status)

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (str(self), int(self.status))


def text_of(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def failed(status: int) -> NoReturn:
    raise Error(text_of(c.mixt_error_text()), status)


def check(status: int) -> None:
    """Raises the library's own message where a call failed."""
    if status:
        failed(status)


def encoded(text: Any, what: str = "a text") -> bytes:
    """A text or a path for C, which ends texts at a zero byte."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogateescape")
    if not isinstance(text, bytes):
        raise Error(f"{what}: expected a text, found {type(text).__name__}")
    if b"\0" in text:
        raise Error(f"{what}: holds a zero byte, at which it would end")
    return bytes(text)


def taken(pointer: Any) -> str:
    """A text that the library gave to the caller, freed here. `pointer`: a c_void_p or its number."""
    address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    if not address:
        return ""
    text = text_of(ctypes.string_at(address))
    c.mixt_free(address)
    return text


def made_text(function: Callable[..., int], *arguments: Any) -> str:
    """What a function gives behind its last argument, a text for mixt_free."""
    pointer = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(pointer)))
    return taken(pointer)


def made(function: Callable[..., int], *arguments: Any) -> int:
    """The object that a function gives behind its last argument."""
    pointer = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(pointer)))
    return pointer.value or 0


# ---- objects ----

_process = 0  # how often this process has been forked from one that used mixt


def _forked() -> None:
    global _process
    _process += 1


os.register_at_fork(after_in_child=_forked)


def _freed(free: Callable[[int], Any], pointer: int, process: int) -> None:
    """Frees an object where it was made: in a process that was forked its threads are not there to be waited for."""
    if process == _process:
        free(pointer)


class Handle:
    """An object of the library. Freed when nothing refers to it any more, by `close`, or at the end of a `with` block; its
    owner outlives it. One thread at a time uses what belongs to one context: others wait."""

    _what = "object"

    def __init__(self, pointer: int, free: Callable[[int], Any] | None, owner: Handle | None = None) -> None:
        self._pointer: int | None = pointer
        self._owner = owner
        self._lock: Any = owner._lock if owner is not None else threading.RLock()
        self._process = _process
        self._finalizer = weakref.finalize(self, _freed, free, pointer, _process) if free else None

    @property
    def _p(self) -> int:
        """The pointer; an error once it is closed."""
        return self._alive()

    def _alive(self) -> int:
        pointer = self._pointer
        if pointer is None or (self._owner is not None and self._owner._pointer is None):
            raise Error(f"the {self._what} is closed", Status.MIXT_ERROR_STATE)
        if self._process != _process:
            raise Error(
                f"the {self._what} was made before this process was forked, and its threads are not here: make it here, or start "
                "processes by 'spawn'",
                Status.MIXT_ERROR_STATE,
            )
        return pointer

    @property
    def closed(self) -> bool:
        """Whether it has been closed, or what it belongs to."""
        return self._pointer is None or (self._owner is not None and self._owner.closed)

    def close(self) -> None:
        """Frees it now. Whoever uses it later gets an error; closing it again does nothing."""
        with self._lock:
            self._pointer = None
            if self._finalizer is not None:
                self._finalizer()

    def __enter__(self: _H) -> _H:
        self._p
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise Error(
            f"a {self._what} cannot be pickled: it lives in this process. Save its weights to a file and open that there",
            Status.MIXT_ERROR_UNSUPPORTED,
        )

    def __copy__(self) -> NoReturn:
        raise Error(f"a {self._what} cannot be copied", Status.MIXT_ERROR_UNSUPPORTED)

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__copy__()


# ---- options ----


def guess(word: str, words: Iterable[str]) -> str:
    """What a misspelt word was probably meant to be, as a question; else ""."""
    near = difflib.get_close_matches(word, list(words), 1, 0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


class Options:
    """A struct of options, filled by keywords. What it points to lives as long as it does."""

    def __init__(self, struct: type, given: Mapping[str, Any], what: str, **fixed: Any) -> None:
        self.struct = struct()
        self.keep: list[Any] = []
        self.what = what
        self.fields: dict[str, tuple[type, Any, str | None]] = {
            name: (struct, kind, None) for name, kind in fields_of(struct)
        }
        for name, kind in fields_of(struct):
            if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not c.mixt_value:
                self.fields.pop(name)
                for inner, inner_kind in fields_of(kind):
                    self.fields[inner] = (kind, inner_kind, name)
        getattr(c, f"{struct.__name__}_default")(ctypes.byref(self.struct), ctypes.sizeof(struct))
        for name, value in list(given.items()) + list(fixed.items()):
            self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        plain = name.rstrip("_")
        if plain not in self.fields or plain in ("struct_size", "user"):
            words = [n for n in self.fields if n not in ("struct_size", "user")]
            raise Error(f"{self.what}: there is no option '{name}'{guess(plain, words)}")
        if value is None:
            return
        struct, kind, inside = self.fields[plain]
        place = getattr(self.struct, inside) if inside else self.struct
        try:
            setattr(place, plain, self.converted(struct.__name__, plain, kind, value))
        except (TypeError, ValueError, OverflowError, ctypes.ArgumentError) as fault:
            raise Error(f"{self.what}: {name}={value!r}: {fault}") from None

    def converted(self, struct: str, name: str, kind: Any, value: Any) -> Any:
        what = f"{self.what}: {name}"
        if kind is ctypes.c_char_p:
            return encoded(value, what)
        if kind is ctypes.c_bool:
            if not isinstance(value, (bool, int)):
                raise TypeError("expected True or False")
            return bool(value)
        if f"{struct}.{name}" in options.ENUMS:
            return enum_number(options.ENUMS[f"{struct}.{name}"], value, what)
        if kind in (ctypes.c_float, ctypes.c_double):
            return float(value)
        if kind is c.mixt_progress_fn:
            return self.listener(value)
        if kind is ctypes.c_void_p:
            return value._p
        if kind is c.mixt_value:
            return value.raw if hasattr(value, "raw") else value
        if kind == ctypes.POINTER(ctypes.c_char_p):
            return self.texts(value, what)
        if isinstance(kind, type) and issubclass(kind, (ctypes.Array, ctypes._Pointer)):
            return self.numbers(name, kind, value)
        return whole(value)

    def texts(self, value: Any, what: str) -> Any:
        rows = assignments(value) if isinstance(value, Mapping) else list(value)
        array = (ctypes.c_char_p * (len(rows) + 1))(*[encoded(row, what) for row in rows], None)
        self.keep.append(array)
        return ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))

    def numbers(self, name: str, kind: Any, value: Any) -> Any:
        rows = [value] if isinstance(value, int) else list(value)
        count = next(
            (
                n
                for n in (f"{name}_count", f"{name[:-1]}_count", f"{name[:-2]}is_count", "rank", "rope_pairs")
                if n in self.fields
            ),
            None,
        )
        if count and (not issubclass(kind, ctypes.Array) or name in ("dims", "axes", "input_dims", "divisors")):
            setattr(self.struct, count, len(rows))
        if issubclass(kind, ctypes.Array):
            if len(rows) > kind._length_:
                raise ValueError(f"{len(rows)} numbers, more than {kind._length_}")
            return kind(*rows)
        array = (kind._type_ * max(len(rows), 1))(*rows)
        self.keep.append(array)
        return ctypes.cast(array, kind)

    def listener(self, function: Callable[[Any], Any]) -> Any:
        """A function that hears of progress: one that returns False ends the work, and so does one that fails."""
        if not callable(function):
            raise TypeError("expected a function")

        def hear(_: Any, progress: Any) -> bool:
            try:
                return function(value_of(progress.contents)) is not False
            except BaseException as fault:
                self.fault = fault
                return False

        self.keep.append(c.mixt_progress_fn(hear))
        return self.keep[-1]

    fault: BaseException | None = None

    @property
    def at(self) -> Any:
        return ctypes.byref(self.struct)

    def check(self, status: int) -> None:
        """As check, but what a listener raised comes first."""
        if self.fault is not None:
            raise self.fault
        check(status)


def fields_of(struct: type) -> list[tuple[str, Any]]:
    return [(row[0], row[1]) for row in struct._fields_]  # type: ignore[attr-defined]


def whole(value: Any) -> int:
    """A whole number; 64.0 is none, as it would not be in C."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"expected a whole number, found {type(value).__name__}")
    number = value.__index__()
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError("too large")
    return int(number)


def enum_number(name: str, value: Any, what: str) -> int:
    """The number of an enum's word: "cross_entropy"."""
    words = results.WORDS[name]
    if isinstance(value, str):
        word = value.lower().replace("-", "_")
        for number, known in words.items():
            if known == word and known != "count":
                return number
        known_words = [w for w in words.values() if w not in ("count", "none")]
        raise Error(f"{what}: '{value}' is none of {', '.join(known_words)}{guess(word, known_words)}")
    number = whole(value)
    if number not in words:
        raise Error(f"{what}: {number} is none of {', '.join(words.values())}")
    return number


def setting(value: Any) -> str:
    """A value as a configuration has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(setting(v) for v in value) + "]"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def assignments(settings: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Settings as "key=value": {"train": {"lr": 0.1}} and {"train.lr": 0.1} are the same."""
    rows = []
    for key, value in settings.items():
        if not isinstance(key, str):
            raise Error(f"settings: expected the name of a key, found {key!r}")
        if isinstance(value, Mapping):
            rows += assignments(value, f"{prefix}{key}.")
        else:
            rows.append(f"{prefix}{key}={setting(value)}")
    return rows


# ---- values ----


def value_of(struct: Any) -> Any:
    """A struct of the library as a plain value (mixt.results), which shares nothing with it."""
    return _reader(type(struct))(struct)


_readers: dict[type, Callable[[Any], Any]] = {}


def _reader(kind: type) -> Callable[[Any], Any]:
    reader = _readers.get(kind)
    if reader is None:
        reader = _readers[kind] = _make_reader(kind)
    return reader


def _words(name: str) -> Callable[[int], str]:
    words = results.WORDS[name]
    return lambda number: words.get(number, "none")


def _make_reader(kind: type) -> Callable[[Any], Any]:
    target = results.OF[kind]
    names = {f.name for f in dataclasses.fields(target)}
    types = dict(fields_of(kind))
    rows = []
    for name, field in types.items():
        plain = name + "_" if name + "_" in names else name
        if plain in names:
            rows.append((name, plain, _field_reader(kind.__name__, name, field, types)))

    def read(struct: Any) -> Any:
        return target(**{plain: convert(getattr(struct, name), struct) for name, plain, convert in rows})

    return read


def _field_reader(struct: str, name: str, kind: Any, types: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    key = f"{struct}.{name}"
    keys = results.KINDS.get(f"{key}[]")
    if keys:
        return _by_word(keys.split(), kind)
    if isinstance(kind, type) and issubclass(kind, ctypes.Array):
        element = _field_reader(struct, name, kind._type_, types)
        counts = [
            n
            for n in (f"{name}_count", f"{name[:-1]}_count", f"{name.removesuffix('dims')}rank")
            if n in types and n != name
        ]
        count = counts[0] if counts and (not counts[0].endswith("rank") or name.endswith("dims")) else None
        length = int(kind._length_)  # type: ignore[call-overload]
        return lambda value, whole_struct: tuple(
            element(value[i], whole_struct)
            for i in range(min(length, int(getattr(whole_struct, count))) if count else length)
        )
    if key in results.KINDS:
        words = _words(results.KINDS[key])
        return lambda value, _: words(value)
    if kind is ctypes.c_char_p:
        return lambda value, _: None if value is None else text_of(value)
    if kind is ctypes.c_void_p:  # a text of the caller's: freed by who asked for the struct
        return lambda value, _: text_of(ctypes.string_at(value)) if value else None
    if isinstance(kind, type) and issubclass(kind, ctypes.Structure):
        return lambda value, _: value_of(value)
    return lambda value, _: value


def _by_word(keys: Sequence[str], kind: Any) -> Callable[[Any, Any], Any]:
    """Numbers by format, and by kind of work; those that are 0 are left out."""
    words = _words(f"{keys[0]}")
    if len(keys) > 1:
        inner = _by_word(keys[1:], kind._type_)
        return lambda value, struct: {words(i): inner(row, struct) for i, row in enumerate(value) if inner(row, struct)}
    return lambda value, _: {words(i): number for i, number in enumerate(value) if number}


def rows_of(function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    """What a function gives for 0, 1, … until it gives NULL: plain values."""
    index = 0
    while True:
        found = function(*arguments, index)
        if not found:
            return
        yield text_of(found) if isinstance(found, bytes) else value_of(found.contents)
        index += 1


def filled(struct: type, function: Callable[..., int], *arguments: Any) -> Any:
    """The struct that a function fills behind its last argument, as a plain value."""
    place = struct()
    check(function(*arguments, ctypes.byref(place)))
    return value_of(place)
