"""What a step computes and how much memory it takes, before anything runs."""

from __future__ import annotations

import dataclasses

from . import c
from ._base import filled, text_of
from .results import Memory, PlanInfo, PlanNode, RunMemory


def in_bytes(count: float) -> str:
    """1536: "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


@dataclasses.dataclass(frozen=True)
class Plan:
    """A compiled step: printed, it shows its bytes by role."""

    info: PlanInfo
    memory: Memory
    run_memory: RunMemory | None
    roles: list[tuple[str, int, str]]
    parts: list[tuple[str, int, int, str]]
    nodes: list[PlanNode]

    @property
    def bytes(self) -> int:
        """What the step will take, to the byte."""
        return self.memory.total

    def __str__(self) -> str:
        rows = [("step", "", "")] + [(name, in_bytes(size), text) for name, size, text in self.roles if size]
        rows += [("run", "", "")] if self.parts else []
        rows += [(name, in_bytes(host + device), text) for name, host, device, text in self.parts if host + device]
        widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
        return "\n".join(f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {text}".rstrip() for a, b, text in rows)


def plan_of(run: int) -> Plan:
    trainer = c.mixt_run_trainer(run)
    memory, whole = c.mixt_memory(), c.mixt_run_memory()
    found = filled(c.mixt_memory, c.mixt_trainer_memory, trainer), filled(
        c.mixt_run_memory, c.mixt_run_plan_memory, run
    )
    c.mixt_trainer_memory(trainer, memory)
    c.mixt_run_plan_memory(run, whole)
    roles = (c.mixt_memory_role * c.MIXT_MEMORY_ROLES)()
    c.mixt_memory_roles(memory, roles)
    parts = (c.mixt_run_memory_part * c.MIXT_RUN_MEMORY_PARTS)()
    c.mixt_run_memory_parts(whole, parts)
    info = filled(c.mixt_plan_info, c.mixt_plan_describe, trainer)
    nodes = [filled(c.mixt_plan_node, c.mixt_plan_node_at, trainer, i) for i in range(info.nodes)]
    return Plan(
        info,
        *found,
        [(text_of(r.name), r.bytes, text_of(r.text)) for r in roles],
        [(text_of(p.name), p.bytes.host, p.bytes.device, text_of(p.text)) for p in parts],
        nodes,
    )
