"""What the silicon can do. Nothing else in kgen knows these numbers.

Sources: CUDA C++ Programming Guide, "Compute Capabilities" tables (shared memory, registers, threads);
PTX ISA, setmaxnreg and wgmma/tcgen05 shape tables; peak rates and bandwidth are the vendor's datasheet
figures for the SXM part, used only for the roofline that `kgen explain` prints and for the static performance page;
that page's rates of one SM, some of them assumptions, are in kgen/static/rates.py.

B200's peaks are those of the HGX B200 datasheet for one GPU, without sparsity: 1.1 (TF32, half of the next and rounded
there), 2.25 (FP16/BF16), 4.5 (FP8/FP6) and 9 PFLOP/s (FP4). It gives no rates of its own for block-scaled kinds, so
they stand at those of their elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Arch:
    """Limits and abilities of one GPU architecture. Sizes in bytes, rates in FLOP/s and byte/s."""

    name: str  # the nvcc target, e.g. sm_90a
    folder: str  # where its templates live below templates/gemm
    compute_capability: tuple[int, int]
    product: str
    mma: str  # its tensor-core instruction
    smem_per_cta: int  # most dynamic shared memory one CTA may opt into
    smem_per_sm: int
    smem_reserved_per_cta: int  # taken by the system from smem_per_sm for each resident CTA
    registers_per_sm: int
    max_registers_per_thread: int
    max_threads_per_cta: int
    max_cluster: int  # portable cluster size
    sm_count: int
    peak_flops: Mapping[str, float] = field(hash=False)  # dense, fp32 accumulate, by tcgen05's kind; f16: 16 bits
    memory_bandwidth: float
    tmem_columns: int  # 0 where there is no tensor memory

    @property
    def gencode(self) -> str:
        """nvcc's -gencode value; the long form, because the short one may add a pass without the `a` features."""
        return f"arch=compute_{self.name.removeprefix('sm_')},code={self.name}"

    @property
    def peak_flops_16bit(self) -> float:
        """Of bf16 and fp16."""
        return self.peak_flops["f16"]


SM_90A = Arch(
    name="sm_90a",
    folder="sm90a",
    compute_capability=(9, 0),
    product="H100/H200",
    mma="wgmma",
    smem_per_cta=232_448,
    smem_per_sm=233_472,
    smem_reserved_per_cta=1_024,
    registers_per_sm=65_536,
    max_registers_per_thread=255,
    max_threads_per_cta=1_024,
    max_cluster=8,
    sm_count=132,
    peak_flops={"f16": 989.4e12},
    memory_bandwidth=4.8e12,
    tmem_columns=0,
)

SM_100A = Arch(
    name="sm_100a",
    folder="sm100a",
    compute_capability=(10, 0),
    product="B200",
    mma="tcgen05.mma",
    smem_per_cta=232_448,
    smem_per_sm=233_472,
    smem_reserved_per_cta=1_024,
    registers_per_sm=65_536,
    max_registers_per_thread=255,
    max_threads_per_cta=1_024,
    max_cluster=8,
    sm_count=148,
    peak_flops={
        "tf32": 1_125e12,
        "f16": 2_250e12,
        "f8f6f4": 4_500e12,
        "mxf8f6f4": 4_500e12,
        "mxf4": 9_000e12,
        "mxf4nvf4": 9_000e12,
    },
    memory_bandwidth=8.0e12,
    tmem_columns=512,
)

# Newest last: without a card in the machine, `kgen new` takes the newest that has the preset.
ARCHS: dict[str, Arch] = {a.name: a for a in (SM_90A, SM_100A)}
