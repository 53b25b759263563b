"""The program that a kernel's source says, where the source may be wrong: what `kgen check` proves of it."""

from __future__ import annotations

from dataclasses import replace

from extraction_sm100a import Kernel, who_of
from words_sm100a import TESTS

from kgen.protocol import program as P
from kgen.protocol import program_of
from kgen.render import render_kernel

# What programs leave to the reader.
UNTOLD = (("before",), ("after",), ("warp",), ("have read",), ("init", "published"), ("told",), ("threadfence",),
          ("count",))  # fmt: skip


def words_of(plan, source: str, role: P.Role) -> list[tuple]:
    staged = any(t.operand == "d" for t in plan.tensor_maps)
    return [w for w in Kernel(source, staged).words(who_of(role)) if w not in UNTOLD]


def program_of_source(plan, source: str, afresh: bool = False) -> P.Program | None:
    """The plan's program with roles and counts as `source` has them; None where it says what the plan says. Raises
    where no program says such a thing. `afresh` takes every role from the source, also one that is as planned."""
    right, rendered = program_of(plan), render_kernel(plan)
    roles, counts = [], {}
    for role in right.roles:
        words = words_of(plan, source, role)
        counts |= {w[1]: w[3] for w in words if w[0] == "init"}
        if words == words_of(plan, rendered, role) and not afresh:
            roles.append(role)
        else:
            init = (P.Init(),) if any(w[0] == "init" for w in words) else ()
            before, work, after = _split(_ops(iter([w for w in words if w[0] != "init"]), plan, role))
            roles.append(replace(role, before=(*init, *before), work=work, after=after))
    if all(a is b for a, b in zip(roles, right.roles, strict=True)):
        return None
    barriers = tuple(replace(b, count=counts.get(b.name.split()[0], b.count)) for b in right.barriers)
    return replace(right, roles=tuple(roles), barriers=barriers)


def _together(op: P.Op) -> bool:
    """Whether a CTA does this as one, before or after its roles."""
    return isinstance(op, P.CtaBarrier | P.ClusterBarrier | P.TmemAlloc | P.TmemRelinquish | P.TmemDealloc) or (
        isinstance(op, P.One) and all(map(_together, op.body))
    )


def _split(ops: tuple[P.Op, ...]):
    first = next((i for i, op in enumerate(ops) if not _together(op)), None)
    if first is None:  # nothing to do for this role: it leaves through the last barrier
        first = max((i for i, op in enumerate(ops) if isinstance(op, P.CtaBarrier | P.ClusterBarrier)), default=0)
        return ops[:first], (), ops[first:]
    last = max(i for i, op in enumerate(ops) if not _together(op)) + 1
    return ops[:first], ops[first:last], ops[last:]


def _at(ring: str) -> P.At | None:
    return P.At(ring) if ring else None


def _ops(words, plan, role, loops=(), refill=False) -> tuple[P.Op, ...]:
    found: list[P.Op] = []
    into, scales = _issued_into(role, P.AsyncMma, "tmem"), _issued_into(role, P.AsyncCopy, "scales")
    read = next((op.ref.buffer for op in P.walk(role.body) if isinstance(op, P.Read)), "tmem")
    loops = loops if loops or plan.schedule in ("persistent", "clc") else ("tile",)
    for word in words:
        match word:
            case ("end",):
                break
            case ("loop", var, *count):
                body = _ops(words, plan, role, (*loops, var))
                found.append(P.Loop(var, count[0] if count else _count(var, role), body))
            case ("when", text):
                body = _ops(words, plan, role, loops, text == "refill")
                whens = [op for op in P.walk(role.body) if isinstance(op, P.When)]
                (test,) = (op.test for op in whens if TESTS.get(op.text, op.text) == text)
                found.append(P.When(text, test, body))
            case ("one",):
                found.append(P.One(_ops(words, plan, role, loops)))
            case ("wait", barrier, ring, flip):
                found.append(P.Wait(barrier, _at(ring), flip))
            case ("expect", barrier, ring, count, ctas):
                found.append(P.Arrive(barrier, _at(ring), ctas, expect=count))
            case ("arrive", barrier, ring, ctas):
                found.append(P.Arrive(barrier, _at(ring), ctas, per="warp"))
            case ("load", operand, ring, barrier, count, signal):
                var = loops[-1] if loops[-1] in ("k", "fill") else "k"
                place = P.Ref(operand, _at(ring), None, ("tile", var), plan.stages - 1 if refill else 0)
                found.append(P.AsyncLoad(place, count, barrier, _at(ring), signal))
            case ("multiply", a, b, *scaled, ctas):
                reads = [P.Ref("a", _at(a), ctas=ctas), P.Ref("b", _at(b), ctas=ctas)]
                reads += [P.Ref(scales, ctas=ctas) for _ in scaled]
                found.append(P.AsyncMma(tuple(reads), P.Ref(into, P.At("acc"), tag=("tile",), ctas=ctas), "tcgen05"))
            case ("copy", a, b, ctas):
                reads = (P.Ref("sfa", _at(a), ctas=ctas), P.Ref("sfb", _at(b), ctas=ctas))
                found.append(P.AsyncCopy(reads, P.Ref(scales, ctas=ctas)))
            case ("ask", ring, barrier, ctas):
                found.append(P.ClcRequest(P.Ref("clc", _at(ring), tag=("tile",), ctas=ctas), barrier, _at(ring)))
            case ("answer", ring):
                found.append(P.ClcQuery(P.Ref("clc", _at(ring), tag=("tile",))))
            case ("commit", barrier, ring, ctas):
                found.append(P.Commit(barrier, _at(ring), ctas))
            case ("stores", count):
                found.append(P.WaitStores(count))
            case ("read",):
                found.append(P.Read(P.Ref(read, P.At("acc"), tag=("tile",))))
            case ("write", "d"):
                found.append(P.Write(P.Ref("d", P.At("turn"), tag=("tile", "box"))))
            case ("store",):
                found.append(P.AsyncStore(P.Ref("d", P.At("turn"), tag=("tile", "box"))))
            case ("advance", ring):
                found.append(P.Advance(ring))
            case ("alloc" | "dealloc" as what, columns, ctas):
                found.append({"alloc": P.TmemAlloc, "dealloc": P.TmemDealloc}[what](columns, ctas))
            case (what,):
                plain = {"cluster": P.ClusterBarrier, "cta": P.CtaBarrier, "fence": P.Fence,
                         "commit stores": P.CommitStores, "relinquish": P.TmemRelinquish}  # fmt: skip
                found.append(plain[what]())
            case _:
                raise ValueError(f"no operation for {word}")
    return tuple(found)


def _issued_into(role, kind, otherwise: str) -> str:
    """The buffer that a role's multiplies or copies write."""
    return next((op.into.buffer for op in P.walk(role.body) if isinstance(op, kind)), otherwise)


def _count(var: str, role):
    return next(op.count for op in P.walk(role.body) if isinstance(op, P.Loop) and op.var == var)
