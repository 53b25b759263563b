"""tcgen05 instruction descriptors: encoded constants, every field, and the shape tables."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.emulator.idesc import (
    OPERANDS,
    RESULTS,
    InstructionDescriptor,
    InstructionError,
    check_instruction,
    decode_idesc,
)

D = InstructionDescriptor
ENCODED = [
    (0x08400490, D("f16", 128, 256, "bf16", "bf16")),
    (0x10400490, D("f16", 256, 256, "bf16", "bf16")),
    (0x04100490, D("f16", 64, 64, "bf16", "bf16")),
    (0x08218490, D("f16", 128, 128, "bf16", "bf16", transpose_a=True, transpose_b=True)),
    (0x08A00000, D("mxf8f6f4", 128, 128, "e4m3", "e4m3", scale_format="ue8m0")),
    (0x68A00030, D("mxf8f6f4", 128, 128, "e4m3", "e4m3", scale_format="ue8m0", sfa_id=3, sfb_id=3)),
    (0x08200480, D("mxf4nvf4", 128, 128, "e2m1", "e2m1", scale_format="ue4m3")),
    (0x10C00480, D("mxf4", 256, 256, "e2m1", "e2m1", scale_format="ue8m0")),
]


@pytest.mark.parametrize(("word", "record"), ENCODED, ids=lambda v: hex(v) if isinstance(v, int) else v.kind)
def test_encoded_examples(word, record):
    assert decode_idesc(word, record.kind) == record
    assert record.encode() == word


@given(st.integers(0, (1 << 32) - 1), st.sampled_from(list(OPERANDS)))
def test_every_word_is_either_kept_whole_or_refused(word, kind):
    try:
        record = decode_idesc(word, kind)
    except InstructionError as error:
        assert error.problems
    else:
        assert record.encode() == word


@given(st.data())
def test_encode_then_decode_is_the_identity(data):
    kind = data.draw(st.sampled_from(list(OPERANDS)))
    scaled = kind.startswith("mx")
    packed = kind in ("mxf4", "mxf4nvf4")
    operand = st.sampled_from(list(OPERANDS[kind].values()))
    flag = st.booleans()
    sparse = data.draw(flag)
    ids = st.sampled_from([0, 2] if packed else [0, 1, 2, 3])
    record = D(
        kind,
        data.draw(st.sampled_from([128, 256] if scaled else [32, 64, 128, 256])),
        data.draw(st.integers(1, 32)) * 8,
        data.draw(operand),
        data.draw(operand),
        "f32" if scaled else data.draw(st.sampled_from(list(RESULTS[kind].values()))),
        negate_a=kind != "i8" and data.draw(flag),
        negate_b=kind != "i8" and data.draw(flag),
        transpose_a=not packed and data.draw(flag),
        transpose_b=not packed and data.draw(flag),
        sparse=sparse,
        sparsity_selector=data.draw(st.integers(0, 3)) if sparse and not scaled else 0,
        saturate=kind == "i8" and data.draw(flag),
        max_shift=0 if scaled else data.draw(st.sampled_from([0, 8, 16, 32])),
        scale_format=(data.draw(st.sampled_from(["ue8m0", "ue4m3"])) if kind == "mxf4nvf4" else "ue8m0")
        if scaled
        else None,
        sfa_id=data.draw(ids) if scaled else 0,
        sfb_id=data.draw(ids) if scaled else 0,
    )
    assert decode_idesc(record.encode(), kind) == record


@pytest.mark.parametrize(
    ("kind", "word", "message"),
    [
        ("f16", 0x08400490 | 1 << 6, "bit 6 "),
        ("f16", 0x08400490 | 1 << 23, "bit 23"),
        ("f16", 0x08400490 | 1 << 29, "bit 29"),
        ("f16", 0x08400490 | 1 << 3, "only kind::i8 saturates"),
        ("f16", 0x08400490 | 1, "sparsity selector"),
        ("f16", 0x08400490 | 2 << 7, "A type code 3"),
        ("f16", 0x08400490 | 2 << 4, "D type code 3"),
        ("tf32", 0x08400490, "A type code 1"),
        ("i8", 0x08400020 | 1 << 13, "cannot negate"),
        ("f8f6f4", 0x08400010 | 2 << 10, "B type code 2"),
        ("mxf8f6f4", 0x08200000, r"scale \(bit 23\) type code 0"),
        ("mxf8f6f4", 0x08A00000 | 1 << 24, "bits 26:24"),
        ("mxf8f6f4", 0x08A00000 | 1 << 31, "bit 31"),
        ("mxf4", 0x08A00480 | 1 << 15, "cannot be transposed"),
        ("mxf4", 0x08A00480 | 1 << 12, "bit 12"),
        ("mxf4", 0x08A00480 | 1 << 29, r"SFA_ID \(must be 0 or 2\)"),
        ("mxf4nvf4", 0x08200480 | 3 << 4, "SFB_ID"),
        ("f4", 0, "does not exist"),
    ],
)
def test_malformed_fields_are_named(kind, word, message):
    with pytest.raises(InstructionError, match=message):
        decode_idesc(word, kind)


def test_k_is_32_bytes_of_operand():
    for kind, formats, k in (
        ("f16", "bf16", 16), ("tf32", "tf32", 8), ("f8f6f4", "e4m3", 32), ("i8", "s8", 32),
        ("mxf8f6f4", "e2m1", 32), ("mxf4", "e2m1", 64), ("mxf4nvf4", "e2m1", 64),
    ):  # fmt: skip
        d = D(kind, 128, 128, formats, formats)
        assert d.k == k and replace(d, sparse=True).k == 2 * k


def make(kind, m, n, **kw):
    types = {"f16": "bf16", "tf32": "tf32", "f8f6f4": "e4m3", "i8": "s8", "mxf8f6f4": "e4m3"}
    operand = types.get(kind, "e2m1")
    scale = "ue8m0" if kind.startswith("mx") else None
    return D(kind, m, n, operand, operand, "s32" if kind == "i8" else "f32", scale_format=scale, **kw)


def accepted(kind, m, cta_group, **kw):
    """All N that are accepted, and those among them that come with a warning about N."""
    vec = {"mxf8f6f4": 1, "mxf4": 2, "mxf4nvf4": 2}.get(kind)
    ok, warned = [], []
    for n in range(0, 264, 8):
        try:
            warnings = check_instruction(make(kind, m, n, **kw), cta_group, scale_vec=vec)
        except InstructionError:
            continue
        ok.append(n)
        warned += [n] if any(w.startswith("N =") for w in warnings) else []
    return ok, warned


def test_shapes_of_the_document_and_the_safe_rule():
    every8, every16, every32 = (list(range(s, 257, s)) for s in (8, 16, 32))
    odd8 = [n for n in every8 if n % 16]
    odd16 = [n for n in every16 if n % 32]
    for kind in ("f16", "tf32", "f8f6f4"):
        assert accepted(kind, 64, 1) == (every8, [])
        assert accepted(kind, 128, 1) == (every8, odd8)
        for m in (128, 256):
            assert accepted(kind, m, 2) == (every16, odd16)
        assert accepted(kind, 256, 1) == accepted(kind, 64, 2) == accepted(kind, 32, 1) == ([], [])
    for m in (64, 128):
        assert accepted("i8", m, 1)[0] == [8, 16, 24, *every16[1:]]
    assert accepted("i8", 256, 2)[0] == every32
    for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
        assert accepted(kind, 128, 1) == (every8, [])
        assert accepted(kind, 64, 1)[0] == []
        assert accepted(kind, 256, 2) == accepted(kind, 128, 2) == (every16, [])
        assert accepted(kind, 128, 2, sparse=True)[0] == []
    assert accepted("f8f6f4", 64, 1, transpose_b=True)[0] == every16
    assert accepted("f8f6f4", 256, 2, transpose_b=True)[0] == every32
    warnings = check_instruction(make("mxf8f6f4", 128, 128), 2, scale_vec=1)
    assert "CUTLASS asserts 256" in warnings[0]


def test_ws_shapes():
    for m in (32, 64, 128):
        for n in (64, 128, 256):
            assert check_instruction(make("f16", m, n, max_shift=8), 1, ws=True) == []
    for record, group in ((make("f16", 128, 32), 1), (make("f16", 256, 64), 1), (make("f16", 64, 64), 2)):
        with pytest.raises(InstructionError):
            check_instruction(record, group, ws=True)
    with pytest.raises(InstructionError, match="N = 256"):
        check_instruction(make("f16", 64, 256, sparse=True), 1, ws=True)
    with pytest.raises(InstructionError, match="needs cta_group::1 and kind"):
        check_instruction(make("mxf4", 128, 64), 1, ws=True, scale_vec=2)
    with pytest.raises(InstructionError, match=r"only for \.ws"):
        check_instruction(make("f16", 128, 64, max_shift=8), 1)


@pytest.mark.parametrize(
    ("record", "vec", "message"),
    [
        (D("f16", 128, 64, "bf16", "bf16", "f16"), None, "D = f16 needs"),
        (make("f16", 128, 64), 1, "no block scales"),
        (make("mxf8f6f4", 128, 64), 2, "takes 1X"),
        (make("mxf4", 128, 64), 4, "takes 2X"),
        (make("mxf4nvf4", 128, 64), None, "takes 2X or 4X"),
        (replace(make("mxf4nvf4", 128, 64), scale_format="ue4m3"), 2, "ue4m3 scales need 4X"),
        (make("mxf4nvf4", 128, 64, sfa_id=2), 4, "both must be 0"),
        (make("mxf4", 128, 64, k96=True), 2, "sm_103a"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_type_rules(record, vec, message):
    with pytest.raises(InstructionError, match=message):
        check_instruction(record, 1, scale_vec=vec)


def test_mixed_16_bit_types_are_only_warned_about():
    assert "not documented" in check_instruction(D("f16", 128, 64, "bf16", "f16"), 1)[0]
    assert check_instruction(D("f16", 128, 64, "f16", "f16", "f16"), 1) == []
