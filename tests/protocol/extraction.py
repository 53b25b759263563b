"""The barrier calls of a rendered kernel and of its protocol program, both as one list of words per role."""

from __future__ import annotations

import re

from kgen.protocol import program as P

# What counts, in the kernel and in the functions it calls. Named groups become words.
CALLS = [
    (r"mbarrier_init\(smem\.(\w+)\[stage\], (\w+)\)", lambda m, c: ("init", m[1], c(m[2]))),
    (r"cluster_sync\(\)", lambda m, c: ("cluster",)),
    (r"__syncthreads\(\)", lambda m, c: ("cta",)),
    (r"mbarrier_wait\(smem\.(\w+)\[([\w.]+)\], [\w.]+phase( \^ 1)?\)",
     lambda m, c: ("wait", m[1], m[2], int(bool(m[3])))),
    (r"mbarrier_arrive_expect_tx\(smem\.(\w+)\[([\w.]+)\], (\w+)\)", lambda m, c: ("expect", m[1], m[2], c(m[3]))),
    (r"tma_load\(smem\.(\w+)\[([\w.]+)\][^;]*smem\.(\w+)\[([\w.]+)\][^;]*;",
     lambda m, c: ("load", m[1], m[2], m[3], m[4], "self")),
    (r"tma_load_multicast\(smem\.(\w+)\[([\w.]+)\] \+ slice \* BLOCK_K[^;]*smem\.(\w+)\[([\w.]+)\][^;]*ALL_CTAS\);",
     lambda m, c: ("load", m[1], m[2], m[3], m[4], "all")),
    (r"load_k_tile\(smem, ([\w.]+),", lambda m, c: ("call", "load_k_tile", m[1])),
    (r"load_k_tile<BLOCK_\w>\(smem\.(\w),", lambda m, c: ("write", m[1])),
    (r"multiply\(acc, smem\.a(?:\[([\w.]+)\])?[^;]*smem\.b(?:\[([\w.]+)\])?, (k0 > 0|false)\)",
     lambda m, c: ("multiply", m[1] or "0", m[2] or "0")),
    (r"wgmma_wait<(\d)>", lambda m, c: ("multiplies", int(m[1]))),
    (r"release\(smem\.(\w+)\[([\w.]+)\]\)", lambda m, c: ("call", "release", m[1], m[2])),
    (r"mbarrier_arrive\(empty\)", lambda m, c: ("arrive", "self")),
    (r"mbarrier_arrive_cluster\(empty, threadIdx\.x % 32\)", lambda m, c: ("arrive", "all")),
    (r"(\w+)\.advance\(\)", lambda m, c: ("advance", m[1])),
    (r"turn = turn \+ 1 == STAGING", lambda m, c: ("advance", "turn")),
    (r"RingCursor fill = ring", lambda m, c: ("copy", "fill", "ring")),
    (r"store\(acc, smem\.d\[[^\]]*\],", lambda m, c: ("call", "store")),
    (r"store\(acc, d,", lambda m, c: ("read",)),
    (r"bulk_wait_read<(STAGING - 1|0)>", lambda m, c: ("stores", c("STAGING") - 1 if m[1] != "0" else 0)),
    (r"stage\(boxes\[turn\], (?:acc|v)", lambda m, c: ("stage",)),
    (r"fence_proxy_async\(\)", lambda m, c: ("fence",)),
    (r"tma_store\(map_d, boxes\[turn\]", lambda m, c: ("store",)),
    (r"bulk_commit\(\)", lambda m, c: ("commit",)),
    (r"if \((?:threadIdx\.x == 0 && )?k0 > 0( && refill < k)?\)", lambda m, c: ("when", bool(m[1]))),
    (r"for \(int k0 = 0; k0 < k; k0 \+= BLOCK_K\) \{", lambda m, c: ("loop", "k")),
    (r"for \(int k0 = 0; k0 < min\(k, STAGES \* BLOCK_K\); k0 \+= BLOCK_K\) \{", lambda m, c: ("loop", "fill")),
    (r"for \(int index = [^{]*\{", lambda m, c: ("loop", "tile")),
    (r"for \(int i = 0; i < M_BLOCKS \* (?:BLOCK|OUT)_N / STORE_COLUMNS; \+\+i\) \{", lambda m, c: ("loop", "box")),
    (r"if \(warp >= 4 \* NUM_CONSUMERS\) \{", lambda m, c: ("role", "producer")),
    (r"\} else \{", lambda m, c: ("role", "consumer")),
    (r"\{", lambda m, c: ("open",)),
    (r"\}", lambda m, c: ("close",)),
]  # fmt: skip
_TOKEN = re.compile("|".join(f"(?P<t{i}>{pattern})" for i, (pattern, _) in enumerate(CALLS)))


def _tokens(text: str, constants) -> list[tuple]:
    words, stack = [], []
    for found in _TOKEN.finditer(re.sub(r"//[^\n]*", "", text)):
        number = next(i for i in range(len(CALLS)) if found.group(f"t{i}") is not None)
        pattern, make = CALLS[number]
        word = make(re.fullmatch(pattern, found.group(0)), constants)
        if word[0] == "open":
            stack.append(None)
        elif word[0] == "close":
            if stack and stack.pop():
                words.append(("end",))
        elif word[0] == "loop":
            stack.append("loop")
            words.append(word)
        elif word[0] == "role":
            if word[1] == "producer":
                stack.append(None)
            words.append(word)
        else:
            words.append(word)
    return words


def _function(source: str, name: str) -> str:
    """The body of a device function of the kernel file."""
    start = re.search(rf"(?:DEVICE|__launch_bounds__)[^;{{]*\b{name}\([^{{;]*\)\s*\{{", source)
    assert start, name
    depth, at = 1, start.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        at += 1
    return source[start.end() : at - 1]


def _constants(plan):
    values = {c.name: c.value for group in plan.constants for c in group}
    return lambda text: int(text) if text.isdigit() else values[text]


_PLACES = {"ring.stage": ("ring", 0), "fill.stage": ("fill", 0), "previous": ("ring", -1), "0": ("", 0)}


def kernel_words(source: str, plan) -> dict[str, list[tuple]]:
    """Words per role of a rendered kernel; each role's list begins and ends with what the CTA does together."""
    constants, stages = _constants(plan), plan.stages

    def place(text):
        ring, ahead = _PLACES[text]
        return (ring, ahead % stages)

    def expand(words, argument=None):
        out = []
        for w in words:
            if w[0] == "call" and w[1] == "load_k_tile":
                out += expand(_tokens(_function(source, "load_k_tile"), constants), w[2])
            elif w[0] == "call" and w[1] == "release":
                (arrive,) = _tokens(_function(source, "release"), constants)
                out.append(("arrive", w[2], place(w[3]), arrive[1]))
            elif w[0] == "call":
                out += expand(_tokens(_function(source, "store"), constants))
            elif w[0] in ("wait", "expect"):
                stage = argument if w[2] == "stage" else w[2]
                out.append((w[0], w[1], place(stage), w[3]))
            elif w[0] == "load":
                stage = argument if w[2] == "stage" else w[2]
                assert w[2] == w[4], "lands on another stage than it signals"
                out.append(("load", w[1], place(stage), w[3], w[5]))
            elif w[0] == "multiply":
                out.append(("multiply", place(w[1]), place(w[2])))
            elif w[0] == "stage":
                out += [("read",), ("write", "d")]
            else:
                out.append(w)
        return out

    words = expand(_tokens(_function(source, "gemm"), constants))
    marks = [i for i, w in enumerate(words) if w[0] == "role"]
    if not marks:
        return {"warpgroup": words}
    before, producer, rest = words[: marks[0]], words[marks[0] + 1 : marks[1]], words[marks[1] + 1 :]
    after = [w for w in rest[-1:] if w == ("cluster",)]
    consumer = rest[: len(rest) - len(after)]
    return {"producer": [*before, *producer, *after], "consumer": [*before, *consumer, *after]}


def program_words(program: P.Program, role: P.Role) -> list[tuple]:
    """The same of a protocol program."""
    depth = {r.name: r.depth for r in program.rings}

    def place(at):
        return (at.ring, at.ahead % depth[at.ring]) if at else ("", 0)

    def words(ops):
        for op in ops:
            match op:
                case P.Init():
                    yield from (("init", b.name, b.count) for b in program.barriers)
                case P.ClusterBarrier():
                    yield ("cluster",)
                case P.CtaBarrier():
                    yield ("cta",)
                case P.Wait(barrier, at, flip):
                    yield ("wait", barrier, place(at), flip)
                case P.Arrive(expect=0):
                    assert op.per == "warp" and op.count == 1
                    yield ("arrive", op.barrier, place(op.at), op.ctas)
                case P.Arrive():
                    yield ("expect", op.barrier, place(op.at), op.expect)
                case P.AsyncLoad():
                    assert op.at == op.into.at
                    yield ("load", op.into.buffer, place(op.at), op.barrier, op.into.ctas)
                case P.AsyncMma():
                    yield ("multiply", *(place(r.at) for r in op.reads))
                case P.WaitGroup(n):
                    yield ("multiplies", n)
                case P.WaitStores(n):
                    yield ("stores", n)
                case P.Read():
                    yield ("read",)
                case P.Write(ref):
                    yield ("write", ref.buffer)
                case P.Fence():
                    yield ("fence",)
                case P.AsyncStore():
                    yield ("store",)
                case P.CommitStores():
                    yield ("commit",)
                case P.Advance(ring):
                    yield ("advance", ring)
                case P.Copy(ring, of):
                    yield ("copy", ring, of)
                case P.When():
                    yield ("when", "and" in op.text)
                    yield from words(op.body)
                case P.Loop():
                    yield ("loop", op.var)
                    yield from words(op.body)
                    yield ("end",)
                case _:
                    raise AssertionError(op)

    return list(words(role.body))
