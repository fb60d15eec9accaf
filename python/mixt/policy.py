"""Precision policies: a format for everything, and rules that give some layers and ops another one."""

from __future__ import annotations

import os
from typing import Any

from . import c
from ._base import Error, Handle, assignments, check, encoded, enum_number, filled, made, made_text, text_of
from .results import PolicyPhase, PolicyRule


class Policy(Handle):
    """A precision policy: `Policy("bf16")`, `Policy("policy.yaml")`, `Policy(text="default: bf16")`."""

    _what = "policy"

    def __init__(self, name_or_path: str | os.PathLike[str] = "", *, text: str | None = None) -> None:
        if text is not None:
            pointer = made(c.mixt_policy_parse, encoded(text), b"text")
        else:
            pointer = made(c.mixt_policy_open, encoded(name_or_path, "policy"))
        super().__init__(pointer, c.mixt_policy_free)

    @property
    def rules(self) -> list[PolicyRule]:
        """Its rules, in the order in which they stand: the last that matches counts."""
        with self._lock:
            return [
                filled(c.mixt_policy_rule, c.mixt_policy_get, self._p, i) for i in range(c.mixt_policy_count(self._p))
            ]

    @property
    def phases(self) -> list[PolicyPhase]:
        """Its phases; none: it is the same throughout."""
        with self._lock:
            count = c.mixt_policy_phases(self._p)
            return [filled(c.mixt_policy_phase, c.mixt_policy_get_phase, self._p, i) for i in range(count)]

    def add(
        self,
        precision: str,
        *,
        layer: str | None = None,
        op: str | None = None,
        backward: str = "none",
        keep: str = "none",
    ) -> Policy:
        """Adds a rule behind those that there are, where it wins over them; gives the policy back."""
        rule = c.mixt_policy_rule()
        rule.layer = None if layer is None else encoded(layer, "layer")
        rule.op = None if op is None else encoded(op, "op")
        rule.forward = enum_number("mixt_dtype", precision, "precision")
        rule.backward = enum_number("mixt_dtype", backward, "backward")
        rule.keep = enum_number("mixt_dtype", keep, "keep")
        with self._lock:
            check(c.mixt_policy_add(self._p, rule))
        return self

    def text(self) -> str:
        """The policy as YAML."""
        with self._lock:
            return made_text(c.mixt_policy_print, self._p)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it into a file that `precision` takes; a file of that name is replaced."""
        with self._lock:
            check(c.mixt_policy_write(self._p, encoded(path, "path")))

    @property
    def made_by(self) -> str:
        return text_of(c.mixt_policy_made_by(self._p))

    def __eq__(self, other: object) -> bool:
        """Whether both give the same bits."""
        return isinstance(other, Policy) and bool(c.mixt_policy_equal(self._p, other._p))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<mixt.Policy\n{self.text()}>" if not self.closed else "<mixt.Policy, closed>"


class Config(Handle):
    """A configuration: a value for every key. `Config("digits.yaml", {"train.lr": 0.1}, precision="bf16")`."""

    _what = "configuration"

    def __init__(self, path: str | os.PathLike[str] | None = None, settings: Any = None, /, **keys: Any) -> None:
        super().__init__(made(c.mixt_config_new), c.mixt_config_free)
        if path is not None:
            check(c.mixt_config_load(self._p, encoded(path, "config")))
        for row in assignments(settings or {}) + assignments(keys):
            self.set(row)

    @classmethod
    def _taken(cls, pointer: int) -> Config:
        made_here = cls.__new__(cls)
        Handle.__init__(made_here, pointer, c.mixt_config_free)
        return made_here

    def set(self, assignment: str) -> None:
        """Sets a key: "train.lr=0.1"."""
        with self._lock:
            check(c.mixt_config_set(self._p, encoded(assignment, "setting"), b"Python"))

    def __setitem__(self, key: str, value: Any) -> None:
        for row in assignments({key: value}):
            self.set(row)

    def __getitem__(self, key: str) -> Any:
        """The value of a key, as a text, a number or a bool."""
        word = encoded(key, "key")
        for record in keys():
            if record.name == key:
                break
        else:
            raise Error(f"'{key}' is no key of a configuration", c.mixt_status.MIXT_ERROR_CONFIG)
        with self._lock:
            if record.type in ("int", "size"):
                return c.mixt_config_int(self._p, word)
            if record.type == "float":
                return c.mixt_config_float(self._p, word)
            if record.type == "bool":
                return bool(c.mixt_config_bool(self._p, word))
            return text_of(c.mixt_config_string(self._p, word))

    def was_set(self, key: str) -> bool:
        """False while the key has its default."""
        return bool(c.mixt_config_was_set(self._p, encoded(key, "key")))

    def text(self, comments: bool = False) -> str:
        """Every key as YAML that reads back to the same values."""
        with self._lock:
            return made_text(c.mixt_config_print, self._p, bool(comments))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it, with comments, into a file, which is replaced as a whole or not at all."""
        with self._lock:
            check(c.mixt_config_write(self._p, encoded(path, "path")))

    def __repr__(self) -> str:
        return f"<mixt.Config\n{self.text()}>" if not self.closed else "<mixt.Config, closed>"


def keys() -> list[Any]:
    """The keys of a configuration, each with its type, default, range and help."""
    from ._base import rows_of

    if not _keys:
        _keys.extend(rows_of(c.mixt_config_key))
    return list(_keys)


_keys: list[Any] = []


def config_of(config: Any, settings: Any, given: Any) -> Config:
    """A configuration out of what functions take: a file, or a Config, and settings that win over it."""
    if isinstance(config, Config):
        copy = Config._taken(made(c.mixt_config_copy, config._p))
        for row in assignments(settings or {}) + assignments(given):
            copy.set(row)
        return copy
    return Config(config, settings, **given)
