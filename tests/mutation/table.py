"""What is perturbed in a rendered Blackwell kernel: each match of a pattern, each replacement, is one mutant."""

from __future__ import annotations

import re
from dataclasses import dataclass

# group: [(name, pattern, replacements)]; a replacement may refer to groups of the pattern.
TABLE: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {
    "count": [("count", r"(mbarrier_init\(smem\.\w+\[\w+\], \w+)\);", (r"\1 + 1);", r"\1 - 1);"))],
    "bytes": [
        ("bytes", r"(mbarrier_arrive_expect_tx\(smem[^;]*STAGE_BYTES)\);", (r"\1 + 16);", r"\1 - 16);", r"\1 / 2);")),
    ],
    "phase": [
        ("no ^ 1", r"(mbarrier_wait\(smem[^;]*phase) \^ 1\);", (r"\1);",)),
        ("^ 1", r"(mbarrier_wait\(smem[^;]*phase)\);", (r"\1 ^ 1);",)),
        ("first phase", r"uint32_t phase = 0;", ("uint32_t phase = 1;",)),
        ("phase kept", r"phase \^= [^;]*;", (";",)),
    ],
    "signal": [
        ("mask", r"PAIR = 0b11;", ("PAIR = 0b01;", "PAIR = 0b10;")),
        ("commit's cta_group", r"tcgen05\.commit\.cta_group::2", ("tcgen05.commit.cta_group::1",)),
        ("load's cta_group", r"tensor\.2d\.cta_group::2\.", ("tensor.2d.",)),
        ("whom a load signals", r"first, %2, 0;", ("first, %2, 1;",)),
        ("who is released", r"mbarrier_arrive_cluster\(acc_empty, 0\)", ("mbarrier_arrive_cluster(acc_empty, 1)",)),
        ("who announces", r"if \(cluster_rank\(\) == 0\) mbarrier", ("if (cluster_rank() == 1) mbarrier", "mbarrier")),
        ("who issues", r"cluster_rank\(\) == 0 && elect_one", ("cluster_rank() == 1 && elect_one", "elect_one")),
    ],
    "fence": [
        ("proxy", r"\bfence_proxy_async\(\);", (";",)),
        ("mbarrier_init", r"\bfence_mbarrier_init\(\);", (";",)),
        ("before", r"tcgen05_fence_before\(\);", (";",)),
        ("after", r"tcgen05_fence_after\(\);", (";",)),
    ],
    "launch control": [
        ("answer's bytes", r"CLC_BYTES = 16;", ("CLC_BYTES = 8;", "CLC_BYTES = 32;")),
        ("readers", r"(CLC_EMPTY_ARRIVALS = [^;]*);", (r"\1 + 1;", r"\1 - 1;")),
        ("expected bytes", r"mbarrier_arrive_expect_tx_cluster\(smem[^;]*\);", (";",)),
        ("expected by", r"(mbarrier_arrive_expect_tx_cluster\(smem[^;]*), rank\);", (r"\1, 0);",)),
        ("answer read", r"mbarrier_arrive_cluster\(smem\.clc_empty[^;]*\);", (";",)),
        ("answer read by", r"(mbarrier_arrive_cluster\(smem\.clc_empty[^;]*), 0\);", (r"\1, 1);",)),
        ("query", r"clc_try_cancel\(smem[^;]*\);", (";",)),
        ("both CTAs", r'"\.multicast::cluster::all\.b128 ', ('".b128 ',)),
        ("no answer", r"(mov\.b32 %0, )-1;", (r"\g<1>0;",)),
        ("answer given", r"@given cluster", ("cluster", "@!given cluster")),
        ("asked again", r"while \(next_tile\(smem, clc\) >= 0\)", ("while (next_tile(smem, clc) >= -1)",)),
        ("last answer", r"first < 0 \? -1 :", ("",)),
        ("cursor", r"clc\.advance\(\);", (";",)),
        ("told to the warp", r"__shfl_sync\(0xffffffff, index, 0\)", ("index", "__shfl_sync(0xffffffff, index, 1)")),
    ],
    "scales": [
        ("copy", r"tcgen05_copy\(scales[^;]*\);", (";",)),
        ("copies", r"k < ATOMS_K; \+\+k", ("k < ATOMS_K - 1; ++k",)),
        ("copies of B", r"n < BLOCK_N / ATOM_ROWS; \+\+n", ("n < BLOCK_N / ATOM_ROWS - 1; ++n",)),
        ("spread", r"32x128b\.warpx4", ("64x128b.warpx2::02_13", "128x128b")),
        ("copy's cta_group", r"tcgen05\.cp\.cta_group::2", ("tcgen05.cp.cta_group::1",)),
        ("rows of an atom", r"uint64_t\(128 >> 4\) << 32", ("uint64_t(256 >> 4) << 32", "uint64_t(64 >> 4) << 32")),
        ("copy's version", r"from = 1ull << 46", ("from = 0ull << 46",)),
        ("copy's swizzle", r"from = 1ull << 46", ("from = 2ull << 61 | 1ull << 46",)),
        ("column of A", r"scales \+ k \* ATOM_COLUMNS", ("scales", "scales + 2 * k * ATOM_COLUMNS")),
        ("column of B", r"\(ATOMS_K \+ k \* \(BLOCK_N / ATOM_ROWS\)\)", 
         ("(k * (BLOCK_N / ATOM_ROWS))", "(ATOMS_K + k)")),
        ("column within B", r"\+ n \* ATOM_COLUMNS", ("",)),
        ("atom of A", r"sfa \+ k \* ATOM_BYTES", ("sfa", "sfa + k * ATOM_BYTES / 2")),
        ("atom of B", r"\(n \* ATOMS_K \+ k\)", ("(k * (BLOCK_N / ATOM_ROWS) + n)", "n")),
        ("first column", r"SCALE_TMEM = ACC_SLOTS \* BLOCK_N;", ("SCALE_TMEM = ACC_SLOTS * BLOCK_N - ATOM_COLUMNS;",)),
        ("scale read of A", r"scales_of_a\(scales, block / 4\)",
         ("scales_of_a(scales, 0)", "scales_of_b(scales, block / 4)")),
        ("scale read of B", r"scales_of_b\(scales, block / 4\)",
         ("scales_of_b(scales, 0)", "scales_of_a(scales, block / 4)")),
        ("ids", r"\| first << 29 \| first << 4", ("| 1u << 29 | first << 4", "| first << 29 | 2u << 4")),
        ("format of scales", r"INSTRUCTION = 0 << 23", ("INSTRUCTION = 1 << 23",)),
        ("scales are ue8m0", r"INSTRUCTION = 1 << 23", ("INSTRUCTION = 0 << 23",)),
        ("block", r"block_scale\.block16", ("block_scale.block32",)),
        ("bytes of scales", r"(SCALE_BYTES = SFA_BYTES \+ SFB_BYTES);", ("SCALE_BYTES = SFA_BYTES;", r"\1 + 16;")),
        ("load", r"tma_load(?:_pair)?\(smem\.sf\w[^;]*\);", (";",)),
        ("word", r"(word = k0 / BLOCK_K \* ATOMS_K \* ATOM_WORDS);", ("word = 0;", r"\1 / 2;")),
        ("row of atoms", r"tile\.(row|column) / ATOM_ROWS\)", (r"0)", r"tile.\1 / ATOM_ROWS + 1)")),
    ],
    "wait": [
        ("wait", r"mbarrier_wait\(smem[^;]*\);", (";",)),
        ("wait for a load", r"tcgen05_wait_load\(\);", (";",)),
        ("store groups", r"bulk_wait_read<[^>]*>\(\);", (";",)),
        ("one group more", r"bulk_wait_read<STAGING - 1>", ("bulk_wait_read<STAGING>",)),
    ],
    "arrive": [
        ("announcement", r"mbarrier_arrive_expect_tx\(smem[^;]*\);", (";",)),
        ("arrival", r"mbarrier_arrive(?:_cluster)?\(acc_empty[^;]*\);", (";",)),
        ("release", r"release\(acc_empty\);", (";",)),
        ("early release", r"c \+ CHUNK == BLOCK_N\) release", ("c == 0) release",)),
        ("commit", r"tcgen05_commit\(smem[^;]*\);", (";",)),
        ("store group", r"bulk_commit\(\);", (";",)),
        ("advance", r"(?:ring|fill|acc)\.advance\(\);", (";",)),
    ],
    "tensor memory": [
        ("alloc", r"tcgen05_alloc\(smem[^;]*\);", (";",)),
        ("relinquish", r"tcgen05_relinquish\(\);", (";",)),
        ("dealloc", r"tcgen05_dealloc\(tmem[^;]*\);", (";",)),
        ("columns", r"(tcgen05_(?:de)?alloc\((?:smem\.tmem\[0\]|tmem), TMEM_COLUMNS)\);", (r"\1 / 2);",)),
        ("accumulator", r"multiply\(tmem \+ slot \* BLOCK_N", ("multiply(tmem + slot * BLOCK_N / 2",)),
        ("slot", r"consumer \* ACCUMULATORS \+ acc\.slot", ("acc.slot",)),
        ("lanes", r"first_lane << 16", ("first_lane << 15",)),
    ],
    "barrier": [
        ("cluster_sync", r"cluster_sync\(\);", (";",)),
        ("__syncthreads", r"__syncthreads\(\);", (";",)),
        ("__syncwarp", r"__syncwarp\(\);", (";",)),
    ],
    "descriptor": [
        ("stride", r"1024 >> 4;", ("512 >> 4;", "2048 >> 4;")),
        ("swizzle", r"2ull << 61", ("4ull << 61", "0ull << 61")),
        ("version", r"1ull << 46", ("0ull << 46", "2ull << 46")),
        ("address", r"& 0x3ffff\) >> 4", ("& 0x3fff) >> 4", "& 0x3ffff) >> 5")),
    ],
    "instruction": [
        ("sums", r"INSTRUCTION = 1 << 4", ("INSTRUCTION = 0 << 4",)),
        ("format of A", r"1 << 7 \|", ("0 << 7 |",)),
        ("format of B", r"1 << 10;", ("0 << 10;",)),
        ("A is e4m3", r"= 0 << 7 \|", ("= 1 << 7 |",)),
        ("B is e4m3", r"0 << 10;", ("1 << 10;",)),
        ("N", r"BLOCK_N / 8 << 17", ("(BLOCK_N / 8 - 2) << 17", "BLOCK_N / 8 << 16")),
        ("M", r"MMA_M / 16 << 24", ("MMA_M / 32 << 24", "MMA_M / 16 << 23")),
        ("negated", r"INSTRUCTION = 1 << 4", ("INSTRUCTION = 1 << 13 | 1 << 4",)),
        ("transposed", r"INSTRUCTION = 1 << 4", ("INSTRUCTION = 1 << 15 | 1 << 4", "INSTRUCTION = 1 << 16 | 1 << 4")),
        ("scaled and more", r"(INSTRUCTION = )(\d << 23)",
         (r"\1 1 << 13 | \2", r"\1 1 << 15 | \2", r"\1 1 << 16 | \2")),
    ],
    "k step": [
        ("step", r"k < BLOCK_K; k \+= MMA_K", ("k < BLOCK_K; k += 2 * MMA_K", "k < BLOCK_K - MMA_K; k += MMA_K")),
        ("operand", r"descriptor\((\w) \+ k\)", (r"descriptor(\1)", r"descriptor(\1 + 2 * k)")),
        ("accumulate", r"accumulate \|\| k > 0", ("accumulate", "true")),
        ("first k tile", r"k0 > 0\);", ("true);", "false);")),
    ],
}  # fmt: skip
LINE_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True)
class Mutant:
    group: str
    name: str  # with the line and what became of it
    source: str


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a kernel's device code."""
    end = source.index("#ifndef __CUDACC_RTC__  // the host half")
    comments = [m.span() for m in LINE_COMMENT.finditer(source)]
    found = []
    for group, rows in TABLE.items():
        for name, pattern, replacements in rows:
            for match in re.finditer(pattern, source):
                if match.start() > end or any(a <= match.start() < b for a, b in comments):
                    continue
                line = source.count("\n", 0, match.start()) + 1
                for replacement in replacements:
                    new = match.expand(replacement)
                    label = f"{name}, line {line}: {match[0]} -> {new if new != ';' else 'nothing'}"
                    found.append(Mutant(group, label, source[: match.start()] + new + source[match.end() :]))
    return found
