"""The 32-bit instruction descriptor of tcgen05.mma, and which shapes each kind accepts.

PTX ISA 9.7.16.4.2 (bit tables), Table 39 (shapes), Table 52 (transposed 8-bit B); the same bits are
CUTLASS' UMMA::InstrDescriptor. Sources disagree about the step of N; `check_instruction` refuses what the
document refuses and warns where CUTLASS' own assertions are stricter.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.errors import EmulatorError

_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}

# Operand type codes of bits 9:7 and 12:10, and result type codes of bits 5:4.
OPERANDS = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _F8F6F4,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _F8F6F4,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
RESULTS = {
    "f16": {0: "f16", 1: "f32"},
    "tf32": {1: "f32"},
    "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
PACKED = ("mxf4", "mxf4nvf4")  # two 4-bit elements per byte

# K of one dense instruction: always 32 bytes of operand; sparse doubles it.
K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}


class InstructionError(EmulatorError):
    """A malformed instruction descriptor, or a shape its kind does not have; `problems` names each field."""

    def __init__(self, what: str, problems: list[str]):
        self.problems = problems
        super().__init__(f"{what}: " + "; ".join(problems))


@dataclass(frozen=True)
class InstructionDescriptor:
    """A decoded idesc. For cta_group::2, m and n are those of the pair. A transposed operand is MN-major."""

    kind: str
    m: int
    n: int
    a_format: str
    b_format: str
    d_format: str = "f32"
    negate_a: bool = False
    negate_b: bool = False
    transpose_a: bool = False
    transpose_b: bool = False
    sparse: bool = False
    sparsity_selector: int = 0
    saturate: bool = False
    max_shift: int = 0  # of .ws: 0, 8, 16 or 32 columns
    scale_format: str | None = None  # "ue8m0" or "ue4m3" in the block-scaled kinds
    sfa_id: int = 0
    sfb_id: int = 0
    k96: bool = False  # sm_103a

    @property
    def k(self) -> int:
        """Elements of K that one instruction consumes."""
        return 96 if self.k96 else K[self.kind] * (2 if self.sparse else 1)

    def encode(self) -> int:
        """The 32-bit value. InstructionError if it would not decode to this record again."""
        operand = {name: code for code, name in OPERANDS[self.kind].items()}
        word = self.sparse << 2 | operand[self.a_format] << 7 | operand[self.b_format] << 10
        word |= self.negate_a << 13 | self.negate_b << 14 | self.transpose_a << 15 | self.transpose_b << 16
        word |= self.n >> 3 << 17
        if self.kind in SCALED:
            word |= self.sfb_id << 4 | (self.scale_format == "ue8m0") << 23
            word |= self.m >> 7 << 27 | self.sfa_id << 29 | self.k96 << 31
        else:
            result = {name: code for code, name in RESULTS[self.kind].items()}
            word |= self.sparsity_selector | self.saturate << 3 | result[self.d_format] << 4
            word |= self.m >> 4 << 24 | (0, 8, 16, 32).index(self.max_shift) << 30
        if decode_idesc(word, self.kind) != self:
            raise InstructionError("idesc", [f"{self} has a field that its bits cannot hold"])
        return word


def _bits(word: int, low: int, high: int) -> int:
    return word >> low & ((1 << (high - low + 1)) - 1)


def decode_idesc(word: int, kind: str) -> InstructionDescriptor:
    """The record of a 32-bit idesc for `kind` ("f16", "mxf4nvf4" ...); names every malformed field."""
    if kind not in OPERANDS:
        raise InstructionError("idesc", [f"kind::{kind} does not exist (known: {', '.join(OPERANDS)})"])
    word = int(word) & 0xFFFFFFFF
    decode = _decode_scaled if kind in SCALED else _decode_plain
    problems: list[str] = []

    def zero(low: int, high: int, why: str = "reserved"):
        if _bits(word, low, high):
            place = f"bits {high}:{low}" if high > low else f"bit {low}"
            problems.append(f"{place} must be 0 ({why}), is {_bits(word, low, high):#b}")

    def code(what: str, low: int, high: int, table: dict):
        value = _bits(word, low, high)
        if value not in table:
            problems.append(f"{what} type code {value} is invalid for kind::{kind}")
        return table.get(value, "?")

    fields = decode(word, kind, zero, code)
    if problems:
        raise InstructionError(f"idesc {word:#010x}, kind::{kind}", problems)
    return InstructionDescriptor(
        kind=kind,
        n=_bits(word, 17, 22) << 3,
        negate_a=bool(_bits(word, 13, 13)),
        negate_b=bool(_bits(word, 14, 14)),
        transpose_a=bool(_bits(word, 15, 15)),
        transpose_b=bool(_bits(word, 16, 16)),
        sparse=bool(_bits(word, 2, 2)),
        **fields,
    )


def _decode_plain(word: int, kind: str, zero, code) -> dict:
    zero(6, 6)
    zero(23, 23)
    zero(29, 29)
    if not _bits(word, 2, 2):
        zero(0, 1, "the sparsity selector of a dense instruction")
    if kind == "i8":
        zero(13, 14, "kind::i8 cannot negate")
    else:
        zero(3, 3, "only kind::i8 saturates")
    return {
        "a_format": code("A", 7, 9, OPERANDS[kind]),
        "b_format": code("B", 10, 12, OPERANDS[kind]),
        "d_format": code("D", 4, 5, RESULTS[kind]),
        "m": _bits(word, 24, 28) << 4,
        "sparsity_selector": _bits(word, 0, 1),
        "saturate": bool(_bits(word, 3, 3)),
        "max_shift": (0, 8, 16, 32)[_bits(word, 30, 31)],
    }


def _decode_scaled(word: int, kind: str, zero, code) -> dict:
    zero(0, 1)
    zero(3, 3)
    zero(6, 6)
    zero(24, 26)
    k96 = bool(_bits(word, 31, 31))
    if kind in PACKED:
        zero(12, 12)
        zero(15, 16, "packed 4-bit operands cannot be transposed")
    else:
        zero(31, 31)
        k96 = False
    ue8m0 = bool(_bits(word, 23, 23))
    if kind != "mxf4nvf4" and not ue8m0:
        code("scale (bit 23)", 23, 23, {1: "ue8m0"})
    if kind in PACKED:
        for name, low in (("SFB_ID", 4), ("SFA_ID", 29)):
            if _bits(word, low, low):
                code(f"{name} (must be 0 or 2)", low, low + 1, {0: 0, 2: 2})
    return {
        "a_format": code("A", 7, 9, OPERANDS[kind]),
        "b_format": code("B", 10, 11 if kind in PACKED else 12, OPERANDS[kind]),
        "m": _bits(word, 27, 28) << 7,
        "scale_format": "ue8m0" if ue8m0 else "ue4m3",
        "sfb_id": _bits(word, 4, 5),
        "sfa_id": _bits(word, 29, 30),
        "k96": k96,
    }


# Scale vector sizes (scales per instruction and row) that a kind takes, and their block of K.
SCALE_VECTORS = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (2, 4)}


def check_instruction(
    d: InstructionDescriptor,
    cta_group: int,
    *,
    ws: bool = False,
    scale_vec: int | None = None,
    a_in_tmem: bool = False,
) -> list[str]:
    """Refuse what PTX refuses; return warnings where public sources are stricter than the document.

    scale_vec: 1, 2 or 4 scales per row (1X, 2X/block32, 4X/block16) of the block-scaled kinds.
    Raises InstructionError with every violated rule.
    """
    bad, warn = [], []
    if cta_group not in (1, 2):
        bad.append(f"cta_group {cta_group} does not exist")
    if d.k96:
        bad.append("K = 96 exists only on sm_103a")
    if ws:
        _check_ws(d, cta_group, bad)
    else:
        if d.max_shift:
            bad.append("bits 31:30 (maximum shift) are only for .ws")
        _check_m(d, cta_group, bad, warn)
        _check_n(d, cta_group, a_in_tmem, bad, warn)
    _check_types(d, scale_vec, bad, warn)
    if bad:
        raise InstructionError(f"tcgen05.mma kind::{d.kind} {d.m}x{d.n}, cta_group::{cta_group}", bad)
    return warn


def _check_ws(d: InstructionDescriptor, cta_group: int, bad: list[str]) -> None:
    if cta_group != 1 or d.kind in SCALED:
        bad.append(".ws needs cta_group::1 and kind f16, tf32, f8f6f4 or i8")
    if d.m not in (32, 64, 128):
        bad.append(f"M = {d.m}: .ws has 32, 64 and 128")
    allowed = (64, 128) if d.sparse else (64, 128, 256)
    if d.n not in allowed:
        bad.append(f"N = {d.n}: .ws has {', '.join(map(str, allowed))}")


def _check_m(d: InstructionDescriptor, cta_group: int, bad: list[str], warn: list[str]) -> None:
    if d.kind in SCALED:
        allowed = (128,) if cta_group == 1 else (256,) if d.sparse else (128, 256)
    else:
        allowed = (64, 128) if cta_group == 1 else (128, 256)
    if d.m not in allowed:
        sizes = " and ".join(map(str, allowed))
        bad.append(f"M = {d.m}: kind::{d.kind} with cta_group::{cta_group} has {sizes}")
    elif d.kind == "mxf8f6f4" and cta_group == 2 and d.m == 128:
        warn.append("M = 128 for a pair: the document allows it for mxf8f6f4, CUTLASS asserts 256")


def _check_n(d: InstructionDescriptor, cta_group: int, a_in_tmem: bool, bad, warn) -> None:
    step = 8 * cta_group
    if d.kind == "i8":
        ok = d.n % 32 == 0 if cta_group == 2 else d.n in (8, 24) or d.n % 16 == 0
        rule = "multiples of 32" if cta_group == 2 else "8, 24 and multiples of 16"
    else:
        ok, rule = d.n % step == 0, f"multiples of {step}"
    if not ok or not 8 <= d.n <= 256:
        bad.append(f"N = {d.n}: kind::{d.kind} with cta_group::{cta_group} has {rule} up to 256")
        return
    if d.transpose_b and d.kind in ("i8", "f8f6f4", "mxf8f6f4") and d.n % (16 * cta_group):
        bad.append(f"N = {d.n}: a transposed 8-bit B needs multiples of {16 * cta_group}")
    # The block-scaled kinds step by 16 in CUTLASS as in the document.
    alone = 16 if d.m == 128 and d.kind not in SCALED else 8
    paired = 16 if d.kind in SCALED else 32
    safe = paired if cta_group == 2 else alone
    if d.n % safe:
        where = " with A in tensor memory" if a_in_tmem else ""
        warn.append(f"N = {d.n}: allowed, but for M = {d.m}{where} CUTLASS keeps to multiples of {safe}")


def _check_types(d: InstructionDescriptor, scale_vec: int | None, bad: list[str], warn: list[str]) -> None:
    if d.kind == "f16":
        pair = {d.a_format, d.b_format}
        if d.d_format == "f16" and pair != {"f16"}:
            bad.append("D = f16 needs A and B of type f16")
        elif len(pair) == 2:
            warn.append("f16 x bf16 can be encoded but is not documented")
    if d.kind not in SCALED:
        if scale_vec is not None:
            bad.append(f"kind::{d.kind} takes no block scales")
        return
    if scale_vec not in SCALE_VECTORS[d.kind]:
        sizes = " or ".join(f"{s}X" for s in SCALE_VECTORS[d.kind])
        bad.append(f"scale vector {scale_vec}X: kind::{d.kind} takes {sizes}")
    if d.scale_format == "ue4m3" and scale_vec != 4:
        bad.append("ue4m3 scales need 4X (block16)")
    if scale_vec == 4 and (d.sfa_id or d.sfb_id):
        bad.append(f"SFA_ID {d.sfa_id}, SFB_ID {d.sfb_id}: 4X reads all four bytes, both must be 0")
