"""Runs every mutant of the sm_100a presets 4 to 9, clc and those with block scales; prints the tables of
docs/mutation.md.

    python tests/mutation/run.py --jobs 2 --kept build/mutants.jsonl [--steps 4,9] [--only REGEX] [--again] [--table]

Fates are kept a line each, so that an interrupted run goes on; `--again` runs once more what was not caught, `--table`
runs nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path

HERE = Path(__file__).parent
SPECS = HERE.parents[1] / "specs/gemm/sm_100a"
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "protocol")]

from engine import Fate, fate, proven  # noqa: E402
from survivors import HARMLESS, reason  # noqa: E402
from table import TABLE, Mutant, mutants  # noqa: E402
from variants import preset_plans  # noqa: E402

from kgen.plan import make_plan  # noqa: E402
from kgen.render import render_kernel  # noqa: E402
from kgen.spec.base import parse_spec  # noqa: E402

STEPS = range(4, 10)
SPECIAL = ("clc", "nvfp4", "mxfp8", "mxfp4")  # launch control, scales
ALL = (*STEPS, *SPECIAL)
Key = tuple[str, str]  # kernel, mutant


def plans(steps) -> list:
    """Presets by their numbers, other examples by their names."""
    wanted = {f"gemm_step{s}" for s in steps}
    found = [p for p in preset_plans("sm_100a") if p.name in wanted]
    for path in (SPECS / f"{name}.yaml" for name in SPECIAL if name in steps):
        found.append(make_plan(parse_spec(path.read_text(), str(path)).spec))
    return found


def everything(steps) -> dict[Key, tuple[object, Mutant]]:
    return {(p.name, m.name): (p, m) for p in plans(steps) for m in mutants(render_kernel(p))}


def load(kept: Path) -> dict[Key, Fate]:
    if not kept.exists():
        return {}
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    return {(line.pop("kernel"), line["name"]): Fate(**line) for line in lines}


def run(todo: dict[Key, tuple[object, Mutant]], jobs: int, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool, kept.open("a") as out:
        running = {pool.submit(fate, plan, mutant): key for key, (plan, mutant) in todo.items()}
        for done in as_completed(running):
            out.write(line(running[done], done.result()))
            out.flush()


def line(key: Key, f: Fate) -> str:
    return json.dumps({"kernel": key[0], **asdict(f)}) + "\n"


def tables(fates: dict[Key, Fate]) -> str:
    """Numbers per step and per group, then every survivor with its reason."""
    sources = {p.name: render_kernel(p) for p in plans(ALL)}
    why = {key: reason(*key, sources[key[0]]) or ("unseen", "not looked into") for key, f in fates.items() if alive(f)}
    head = "| mutants | emulator | check | either | harmless | not seen | caught of the harmful |\n|" + "---|" * 8
    lines = ["| kernel " + head]
    for kernel in [*sorted({kernel for kernel, _ in fates}), "all"]:
        lines.append(_row(kernel, {key: f for key, f in fates.items() if kernel in (key[0], "all")}, why))
    lines += ["", "| group " + head]
    groups = [group for group in TABLE if any(f.group == group for f in fates.values())]
    lines += [_row(group, {key: f for key, f in fates.items() if f.group == group}, why) for group in groups]
    told: dict[tuple, list[str]] = {}
    for (kernel, name), said in why.items():
        row, _, rest = name.partition(", line ")
        told.setdefault((*said, row, " ".join(rest.partition(": ")[2].split())), []).append(
            kernel.removeprefix("gemm_")
        )
    lines += ["", "| survivor | change | kernels | kind | why |", "|---|---|---|---|---|"]
    for (kind, text, row, change), kernels in sorted(told.items()):
        where = ", ".join(sorted(set(kernels)))
        lines.append(f"| {row} | `{change}` | {where} | {kind} | {text} |")
    return "\n".join(lines)


def alive(f: Fate) -> bool:
    return f.compiles and not f.caught


def _row(name: str, fates: dict[Key, Fate], why: dict[Key, tuple[str, str]]) -> str:
    ran = [f for f in fates.values() if f.compiles]
    by_emulator, by_check = sum(bool(f.emulator) for f in ran), sum(f.protocol not in ("", "-") for f in ran)
    harmless = sum(why[key][0] == HARMLESS for key in fates if key in why)
    caught, unseen = sum(f.caught for f in ran), sum(key in why for key in fates) - harmless
    share = f"{100 * caught / max(caught + unseen, 1):.1f} %"
    return "| " + " | ".join(map(str, (name, len(ran), by_emulator, by_check, caught, harmless, unseen, share))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", default=",".join(map(str, ALL)))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--only", default="", help="mutants whose `group: name` matches")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--check", action="store_true", help="only the protocols, once more")
    options = parser.parse_args()
    steps = options.steps.split(",")
    wanted, fates = everything(steps), load(options.kept)
    wanted = {key: it for key, it in wanted.items() if re.search(options.only, f"{it[1].group}: {it[1].name}")}
    if options.check:
        fates = {key: replace(f, protocol=proven(wanted[key][0], wanted[key][1].source)) for key, f in fates.items()}
        options.kept.write_text("".join(line(key, f) for key, f in fates.items()))
    elif not options.table:
        todo = {
            key: it
            for key, it in wanted.items()
            if key not in fates or (options.again and fates[key].compiles and not fates[key].emulator)
        }
        run(todo, options.jobs, options.kept)
        fates = load(options.kept)
    print(tables({key: fates[key] for key in wanted if key in fates}))


if __name__ == "__main__":
    main()
