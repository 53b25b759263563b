"""Runs every mutant of the sm_100a presets 4 to 9 and prints the tables of docs/mutation.md.

    python tests/mutation/run.py --jobs 2 --kept build/mutants.jsonl [--steps 4,9] [--again] [--table]

Fates are kept a line each, so that an interrupted run goes on; `--again` runs once more what was not caught, `--table`
runs nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "protocol")]

from engine import Fate, fate, proven  # noqa: E402
from table import TABLE, Mutant, mutants  # noqa: E402
from variants import preset_plans  # noqa: E402

from kgen.render import render_kernel  # noqa: E402

STEPS = range(4, 10)
Key = tuple[str, str]  # kernel, mutant


def plans(steps) -> list:
    wanted = {f"gemm_step{s}" for s in steps}
    return [p for p in preset_plans("sm_100a") if p.name in wanted]


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
    """Numbers per step and per group, then every survivor."""
    lines = ["| kernel | mutants | emulator | check | either | survive | no PTX |", "|---|---|---|---|---|---|---|"]
    kernels = sorted({kernel for kernel, _ in fates})
    for kernel in [*kernels, "all"]:
        lines.append(_row(kernel, [f for (k, _), f in fates.items() if kernel in (k, "all")]))
    lines += ["", lines[0].replace("kernel", "group"), lines[1]]
    lines += [_row(group, [f for f in fates.values() if f.group == group]) for group in TABLE]
    survivors = Counter()
    for (_, name), f in fates.items():
        if f.compiles and not f.caught:
            what, _, change = name.partition(", line ")
            survivors[what, change.partition(": ")[2]] += 1
    lines += ["", "| survivor | change | times |", "|---|---|---|"]
    lines += [f"| {what} | `{change}` | {n} |" for (what, change), n in sorted(survivors.items())]
    return "\n".join(lines)


def _row(name: str, fates: list[Fate]) -> str:
    ran = [f for f in fates if f.compiles]
    by_emulator, by_check = sum(bool(f.emulator) for f in ran), sum(f.protocol not in ("", "-") for f in ran)
    caught = sum(f.caught for f in ran)
    share = f"{caught} ({100 * caught / max(len(ran), 1):.1f} %)"
    cells = (name, len(ran), by_emulator, by_check, share, len(ran) - caught, len(fates) - len(ran))
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", default=",".join(map(str, STEPS)))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--check", action="store_true", help="only the protocols, once more")
    options = parser.parse_args()
    steps = [int(s) for s in options.steps.split(",")]
    wanted, fates = everything(steps), load(options.kept)
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
