"""What other people measured on a B200 with kernels of the same structure. None of it is ours, and the model uses none
of it: it stands beside the model's figures so that a reader can judge them.

TFLOP/s, from the times or rates that they give. Protocols differ, so figures compare within a column only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One source at one size: figures by our rung."""

    who: str
    size: str
    rungs: dict[str, str]


BOOK, COURSE, STUDENT = "the book", "the course", "a student"

COLUMNS = (
    Column(BOOK, "4096³", {"3": "2.6", "4": "278", "7": "606", "8": "1328", "9": "1460"}),
    Column(
        COURSE,
        "4096³",
        {"5": "505", "6": "575", "7": "598", "7, stages 4": "1041", "8": "1185", "9": "1285"},
    ),
    Column(STUDENT, "4096³", {"5": "489", "6": "556", "7": "624", "7, stages 4": "1092", "8": "1322"}),
    Column(COURSE, "8192³", {"6": "513", "7": "530", "7, stages 4": "991", "8": "1395", "9": "1510"}),
    Column(STUDENT, "8192³", {"6": "502", "7": "533", "7, stages 4": "1003", "8": "1481"}),
)

# (who, what, protocol)
SOURCES = (
    (
        BOOK,
        "“Modern GPU Programming for MLSys” (github.com/mlc-ai/modern-gpu-programming-for-mlsys), fp16",
        "locked clocks, 1000 iterations; its chart gives step 9 and cuBLAS one and the same time",
    ),
    (
        COURSE,
        "reference times of the course assignment behind the book (github.com/tlopex/assignment-tirx-gemm), fp16",
        "three digits of a millisecond; no protocol given; its steps are numbered differently",
    ),
    (
        STUDENT,
        "results of one solution (github.com/88Mangos/tirx-gemm), fp16",
        "a rented Modal B200, no protocol given; its step 9 failed",
    ),
)

# (who, size and protocol, figures)
LADDERS = (
    (
        "ThunderKittens, educational ladder (github.com/HazyResearch/ThunderKittens)",
        "bf16 4096³, no protocol known to us",
        "TMA 293; warp roles and a ring 731; epilogue overlapped 1050; pair and two consumers 1285; all of it 1540",
    ),
    (
        "gau-nernst, 02e_matmul_sm100 (github.com/gau-nernst/learn-cuda)",
        "bf16 4096³, a rented Modal B200 where cuBLAS made 1359",
        "TMA 699 to 721; ring 914; warp roles 1054; pair 1170; persistent 1273, tuned 1326",
    ),
    (
        "NVIDIA Tilus, Blackwell tutorial (github.com/NVIDIA/tilus)",
        "fp16 8192³, from Nsight Compute, where cuBLAS made 1600",
        "TMA 454; ring 1103; warp roles 1351; raster 1416; persistent by launch control 1506; pair 1610",
    ),
    (
        "tirx-kernels, production GEMM (github.com/mlc-ai/tirx-kernels)",
        "L2 flushed before each timed call; in brackets the ratio to its reference",
        "bf16 4096³ 1472 (0.954), 8192³ 1595 (1.043); fp16 4096³ 1411 (0.962), 8192³ 1492 (1.011)",
    ),
)
