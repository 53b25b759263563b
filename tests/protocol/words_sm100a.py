"""The synchronisation of a protocol program for Blackwell, in the words of extraction_sm100a.py.

What the programs leave to the reader (the fences of tensor memory, the __syncwarps, what splits of K count in global
memory) follows from rules that are stated here, so that the comparison covers it too.
"""

from __future__ import annotations

from kgen.protocol import program as P

# Conditions, as the kernel's words call them.
TESTS = {"k > 0 and a k tile one lap ahead exists": "refill", "the columns are the last": "last columns"}
# split_k/last_stores.cu: every lane has shared, one counts, and all of the last warp see what the others have shared.
COMES_LAST = [("warp",), ("threadfence",), ("count",), ("threadfence",), ("warp",), ("told",)]


def program_words(program: P.Program, role: P.Role, plan) -> list[tuple]:
    """The words of a protocol program."""
    threads = len(plan.pipelines) == 1
    once, unified = plan.k_tiles == 1, len(program.roles) == 1

    def place(at):
        return at.ring if at else ""

    def meet(op):
        return ("cluster",) if isinstance(op, P.ClusterBarrier) else ("cta",)

    def initialised():
        depths = {}
        for b in program.barriers:
            depth, _ = depths.get(b.name.split()[0], (0, 0))
            depths[b.name.split()[0]] = (depth + b.depth, b.count)
        return [*(("init", name, *told) for name, told in depths.items()), ("init", "published")]

    def words(ops, inside=None):
        previous = None
        for op in ops:
            match op:
                case P.CtaBarrier() | P.ClusterBarrier():
                    # What was done to tensor memory is ordered around a barrier that others enter for it.
                    around = not isinstance(previous, P.Fence)
                    yield from [("before",), meet(op), ("after",)] if around else [meet(op)]
                case P.Wait(barrier, at, flip):
                    yield ("wait", barrier, place(at), flip)
                    if barrier.startswith("acc") or (barrier == "full" and not flip):  # then tensor memory is touched
                        yield from [("after",)] if not (unified and barrier == "acc_full") else []
                case P.Arrive(expect=0):
                    assert op.per == "warp" and op.count == 1
                    reads = op.barrier.startswith("acc")  # by every lane, of tensor memory
                    yield from [("before",), ("warp",)] if reads else []
                    yield ("arrive", op.barrier, place(op.at), op.ctas)
                case P.Arrive():
                    yield ("expect", op.barrier, place(op.at), op.expect, op.ctas)
                case P.ClcRequest(into, barrier, at):
                    assert place(into.at) == place(at)
                    yield ("ask", place(at), barrier, into.ctas)
                case P.ClcQuery(ref):
                    yield ("answer", place(ref.at))
                case P.AsyncLoad():
                    assert place(op.at) == place(op.into.at)
                    yield ("load", op.into.buffer, place(op.at), op.barrier, op.bytes, op.signal)
                case P.AsyncMma():
                    assert {r.ctas for r in op.reads} == {op.into.ctas}
                    yield ("multiply", *(place(r.at) for r in op.reads), op.into.ctas)
                case P.AsyncCopy(reads, into):
                    assert {r.ctas for r in reads} == {into.ctas}
                    yield ("copy", *(place(r.at) for r in reads), into.ctas)
                case P.Commit(barrier, at, ctas):
                    yield ("commit", barrier, place(at), ctas)
                case P.WaitStores(n):
                    yield from [("stores", n), *([("warp",)] if inside == "box" else [])]
                case P.Read():
                    yield from [("read",), ("have read",)]
                case P.Write(ref):
                    yield ("write", ref.buffer)
                case P.Fence():
                    yield from [("fence",), *([("warp",)] if inside == "box" else [])]
                case P.AsyncStore():
                    yield ("store",)
                case P.CommitStores():
                    yield ("commit stores",)
                case P.Advance("done"):
                    yield from [] if once else [("advance", "done")]
                    yield from [] if threads and not once else [("after",)]
                case P.Advance("clc"):
                    yield from [("advance", "clc"), *([("told",)] if role.warps > 1 else [])]
                case P.Advance(ring):
                    yield ("advance", ring)
                case P.TmemAlloc(columns, ctas):
                    yield ("alloc", columns, ctas)
                case P.TmemRelinquish():
                    yield ("relinquish",)
                case P.TmemDealloc(columns, ctas):
                    yield ("dealloc", columns, ctas)
                case P.One():
                    yield from [("one",), *words(op.body), ("end",)]
                case P.When():
                    yield from COMES_LAST if op.text == "this split comes last" else []
                    yield ("when", TESTS.get(op.text, op.text))
                    yield from words(op.body)
                    yield ("end",)
                case P.Loop():
                    single = {"tile": plan.schedule not in ("persistent", "clc"), "k": once}.get(op.var, False)
                    told = ("loop", op.var, op.count) if op.var == "drain" else ("loop", op.var)
                    yield from words(op.body, op.var) if single else [told, *words(op.body, op.var), ("end",)]
                    yield from [("after",)] if threads and op.var == "k" and not once else []
                case _:
                    raise AssertionError(op)
            previous = op

    before = [op for op in role.before if not isinstance(op, P.Init)]
    together = list(words(before))
    meets = [i for i, w in enumerate(together) if w in (("cta",), ("cluster",))]
    if len(meets) > 1:  # of a pair: at the first, nobody has touched tensor memory
        del together[meets[0] + 1], together[meets[0] - 1]
    free = [op for op in role.after if not isinstance(op, P.CtaBarrier | P.ClusterBarrier)]
    last = [("before",), *(meet(op) for op in role.after if op not in free)]
    # Fenced by those only who free it.
    freed = list(words(free))
    freed = [(*freed[:1], ("after",), *freed[1:]) if freed[0] == ("one",) else (("after",), *freed)] if freed else []
    initial = initialised() if any(isinstance(op, P.Init) for op in role.before) else []
    return [*initial, *together, *words(role.work), *last, *(w for part in freed for w in part)]
