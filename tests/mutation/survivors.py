"""Why a mutant survives: it is harmless (the kernel is as right as before), or nothing here can see it."""

from __future__ import annotations

import re

HARMLESS, UNSEEN = "harmless", "unseen"
# (row of the table, what the changed line and its neighbours say or "-> " and what it became, kernels, kind, reason)
REASONS = [
    ("relinquish", "", "", HARMLESS,
     "A CTA that ends gives up the permit too; others on its SM would only wait longer for it."),
    ("before", r"fence_before.*\n.*(?:cluster_sync|__syncthreads)\(\);", "", HARMLESS,
     "At the barriers around allocation and release nobody has unfinished accesses: loads were waited for by "
     "tcgen05.wait::ld, MMAs through their commit, which contains this fence."),
    ("after", r"fence_after.*\n.*const uint32_t tmem", "", HARMLESS,
     "Every later access follows an mbarrier wait with a fence of its own."),
    ("after", r"fence_after.*\n.*tcgen05_dealloc", "", HARMLESS,
     "All accesses are complete at this barrier, and dealloc is none itself; the emulator asks only for that."),
    ("after", r"acc_empty.*\n.*fence_after", "", HARMLESS,
     "The fence after the wait for the first k tile comes before the first MMA as well; without both, the emulator "
     "warns."),
    ("after", r"smem\.full.*\n.*fence_after", "", HARMLESS,
     "What `full` announces was written by TMA, not to tensor memory; the fence after `acc_empty` (or that of the "
     "barrier between tiles) orders the accumulator."),
    ("after", r"__syncthreads.*\n.*fence_after", "gemm_step6", HARMLESS,
     "The fence after the wait for the next tile's first k tile comes before its first MMA as well."),
    ("__syncthreads", r"__syncthreads.*\n.*if \(warp == 0\)", "gemm_step6", HARMLESS,
     "The barrier after the last tile comes after every read of tensor memory already."),
    ("__syncwarp", r"bulk_wait_read.*\n.*__syncwarp", "gemm_step4 gemm_step5", HARMLESS,
     "As the wait before it: a tile has no more boxes than there are buffers, so that none is written twice."),
    ("__syncwarp", r".*keeps what is read", "gemm_nvfp4", HARMLESS, "It only tells the compiler not to read ahead."),
    ("cursor", r"(?=[^\n]*\n\s*return __shfl_sync)", "gemm_clc", HARMLESS,
     "In the branch of the lanes that read no answer: only lane 0 uses its cursor."),
    ("accumulator", "", "gemm_step7 gemm_step8 gemm_nvfp4 gemm_mxfp8", HARMLESS,
     "The kernel has one accumulator: its slot is always 0."),
    ("slot", "", "gemm_step7 gemm_step8 gemm_nvfp4 gemm_mxfp8 gemm_mxfp4", HARMLESS,
     "One consumer: its number is always 0."),
    *((row, f"-> {change}", "gemm_mxfp8", HARMLESS, "A k tile has one atom of scales along K: its number is always 0.")
      for row, change in (("column of A", "scales"), ("column of B", r"\(ATOMS_K \+ k\)"), ("atom of A", "sfa"),
                          ("atom of B", ""), ("scale read of A", "scales_of_a"), ("scale read of B", "scales_of_b"))),
    *((row, f"-> {change}", "gemm_mxfp4", HARMLESS, "A tile has one atom of scales along N: its number is always 0.")
      for row, change in (("column of B", r"\(ATOMS_K \+ k\)"), ("column within B", ""), ("atom of B", r"\(k \*"))),
    ("phase kept", r"phase \^= 1", "gemm_step4 gemm_step5", HARMLESS, "One tile per CTA: nobody waits again."),
    ("store groups", r"STAGING - 1", "gemm_step4 gemm_step5 gemm_step6", HARMLESS,
     "A tile has no more boxes than there are buffers, and the wait for the last tile's stores is another one."),
    ("one group more", "", "gemm_step4 gemm_step5", HARMLESS, "A tile has no more boxes than there are buffers."),
    ("wait", r"no commit may signal.*\n.*smem\.empty", "gemm_step7 gemm_mxfp4", HARMLESS,
     "In a CTA alone the accumulator's commit, which the epilogue waits for, follows those of the ring."),
    ("no ^ 1", r"no commit may signal.*\n.*smem\.empty", "gemm_step7 gemm_mxfp4", HARMLESS,
     "As if the wait were missing."),
    ("advance", r"advance\(\);\n\s*\}\n\s*\}\n\s*\} else if", "gemm_step7 gemm_mxfp4", HARMLESS,
     "The drain waits for one stage again and again; as if the wait were missing."),
    ("wait", r"smem\.empty\[fill\.slot\]", "gemm_step5 gemm_step6", HARMLESS,
     "The accumulator's commit, which the warpgroup waited for, follows those of the ring: a tile's first fills find "
     "every stage free."),
]  # fmt: skip


def reason(kernel: str, name: str, source: str) -> tuple[str, str] | None:
    """(kind, why) of a survivor, by what stands around its line; None where nobody has said why."""
    row, _, rest = name.partition(", line ")
    lines, at = source.split("\n"), int(rest.split(":")[0]) - 1
    # Patterns of two lines that end in the changed one look back, the others forward.
    back, forward = "\n".join(lines[max(at - 1, 0) : at + 1]), "\n".join(lines[at : at + 4])
    for of_row, context, kernels, kind, why in REASONS:
        if context.startswith("->"):
            here = re.search(context, name)
        else:
            here = re.search(context + r"[^\n]*\Z", back) or re.match(r"[^\n]*?" + context, forward)
        if of_row == row and kernel in (kernels.split() or [kernel]) and here:
            return kind, why
    return None
