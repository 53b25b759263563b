"""Checks gemm_nvfp4 on the card in this machine, over a matrix of shapes.

    pytest test_gemm_nvfp4.py           one test per case
    python test_gemm_nvfp4.py [--json]  a line per case; exit code 0 right, 1 wrong, 3 no card, 4 hung

Needs the library (`make`), numpy, ml_dtypes and cuda-python. Operands are fresh random numbers; KGEN_SEED repeats a
run. Every byte of D and around it is poisoned before the launch, and so is what lies around A and B.
"""

import ctypes
import json
import math
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from cuda.bindings import runtime as cudart

NAME = "gemm_nvfp4"
INPUT = np.dtype(np.uint8)
OUTPUT = np.dtype(ml_dtypes.bfloat16)
BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 256  # of one CTA
TILE_M, TILE_N = 256, 256  # of one cluster
MMA_K = 64
STAGES = 4
TMA_OPERANDS = ['a', 'b', 'd']  # rows of these must be 16 bytes apart
WATCHDOG_SECONDS = 60
SEED = int(os.environ.get("KGEN_SEED", secrets.randbits(32)))
INVALID, MISALIGNED = cudart.cudaError_t.cudaErrorInvalidValue, cudart.cudaError_t.cudaErrorMisalignedAddress


class Args(ctypes.Structure):
    """struct gemm_nvfp4_args; strides in elements."""

    _fields_ = [
        *((pointer, ctypes.c_void_p) for pointer in "abd"),
        *((number, ctypes.c_int64) for number in ("m", "n", "k", "lda", "ldb", "ldd")),
        *((pointer, ctypes.c_void_p) for pointer in ("sfa", "sfb")),
        ("alpha", ctypes.c_float),
    ]


# (m, n, k)
SHAPES = [
    (1, 1, 1),
    (BLOCK_M, BLOCK_N, BLOCK_K),  # one tile, one k tile
    (TILE_M, TILE_N, BLOCK_K),
    (7, BLOCK_N, BLOCK_K),  # below a tile
    (BLOCK_M, 7, 3 * BLOCK_K),
    (TILE_M + 1, TILE_N - 1, BLOCK_K + 1),  # tails everywhere
    (3 * TILE_M - 5, 5 * BLOCK_N + 24, 200),  # odd grids
    (5 * BLOCK_M, 3 * TILE_N, 129),
    (2 * TILE_M - 3, 1, 1000),
    (1, 2 * TILE_N + 13, 1000),
    (20 * BLOCK_M + 1, 7 * BLOCK_N + 9, 2 * BLOCK_K + 8),  # more tiles than CTAs
    (BLOCK_M, 139 * BLOCK_N - 3, BLOCK_K),
    (333, 512, 4321),
    # k tiles: one short of the ring, the ring, one over, two rings and one, and a tail
    *((TILE_M, TILE_N, tiles * BLOCK_K) for tiles in (max(1, STAGES - 1), STAGES, STAGES + 1, 2 * STAGES + 1)),
    (TILE_M + 8, TILE_N + 8, (3 * STAGES + 1) * BLOCK_K - 5),
]
TOO_LARGE = []
SHAPES = [(m, n, k + k % 2) for m, n, k in SHAPES]  # two elements to a byte


BLOCK = 16  # elements along k under one scale
LARGEST = 6.0
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # of e2m1, by the low three bits of its code; bit 3 is the sign


def scale_codes(largest):
    """ue4m3 codes of scales that bring `largest` of each block to about LARGEST."""
    return np.maximum(largest / LARGEST, 2.0**-6).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def scale_values(codes):
    return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)


def e2m1_codes(numbers):
    """The nearest element of each number; a number halfway goes to the even code."""
    middle = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    below, above = np.searchsorted(middle, np.abs(numbers)), np.searchsorted(middle, np.abs(numbers), side="right")
    codes = np.where(below % 2 == 0, below, above)
    return (codes + 8 * np.signbit(numbers)).astype(np.uint8)


def scale_atoms(codes):
    """Scale codes [rows, blocks along k] as the kernel reads them: atoms of 512 bytes, each for 128 rows and 4 blocks,
    in which row r and block s are at (r % 32) * 16 + (r / 32) * 4 + s; atoms along k follow one another, then come
    those of the next 128 rows. What is added at the ends is zero."""
    rows, blocks = codes.shape
    padded = np.zeros((-(-rows // 128) * 128, -(-blocks // 4) * 4), np.uint8)
    padded[:rows, :blocks] = codes
    atoms = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4)  # 128 rows, quarter, row in it, atom, block
    return np.ascontiguousarray(atoms.transpose(0, 3, 2, 1, 4)).reshape(len(atoms), -1)


class Operand:
    """A or B: `stored` as the matrix lies in memory, `values` [rows, k] the numbers it stands for, `scales` in atoms.

    Integers are kept as they are, under scales that are powers of two, so that every product and sum is exact.
    """

    def __init__(self, operand, numbers):
        rows, k = numbers.shape
        blocks = np.zeros((rows, -(-k // BLOCK), BLOCK))
        blocks.reshape(rows, -1)[:, :k] = numbers
        if exact := bool((numbers == np.rint(numbers)).all()):
            codes = scale_codes(LARGEST * np.exp2(np.arange(rows)[:, None] % 3 - np.arange(blocks.shape[1]) % 2))
        else:
            codes = scale_codes(np.abs(blocks).max(axis=2))
        each = np.repeat(scale_values(codes), BLOCK, axis=1)[:, :k]
        self.scales = scale_atoms(codes)
        codes = e2m1_codes(numbers if exact else numbers / each)
        self.values = MAGNITUDES[codes % 8] * np.where(codes < 8, 1, -1) * each
        self.stored = codes[:, ::2] | codes[:, 1::2] << 4  # the lower k in the low half


def library():
    path = Path(__file__).resolve().parent / "build" / f"lib{NAME}.so"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: not built yet; run `make` (or `kgen build`)")
    launch = getattr(ctypes.CDLL(str(path)), f"{NAME}_launch")
    launch.argtypes, launch.restype = (ctypes.POINTER(Args), ctypes.c_void_p), ctypes.c_int
    return launch


def why_no_card():
    """Why nothing can be proven here; None where a matching card is."""
    error, major = cudart.cudaDeviceGetAttribute(cudart.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor, 0)
    if error != cudart.cudaError_t.cudaSuccess:
        return f"no usable CUDA card: {error.name}"
    _, minor = cudart.cudaDeviceGetAttribute(cudart.cudaDeviceAttr.cudaDevAttrComputeCapabilityMinor, 0)
    if (major, minor) != (10, 0):
        here = f"the card has compute capability {major}.{minor}"
        return f"{here}; {NAME} is for 10.0"
    return None


def call(function, *args):
    error, *results = function(*args)
    if error != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(f"{function.__name__}: {error.name}")
    return results[0] if results else None


class DeviceMatrix:
    """A row-major matrix in device memory, with rows `stride` elements apart and guard rows below.

    Every byte that is no element is 0xff, which is NaN in D's type: a kernel that reads past an edge
    computes NaN, and one that writes past it is seen by `surroundings_intact`.
    """

    GUARD_ROWS = 3

    def __init__(self, values, stride):
        self.shape, self.stride, self.dtype = values.shape, stride, values.dtype
        self.host = np.full((values.shape[0] + self.GUARD_ROWS, stride), 0xFF, f"V{values.dtype.itemsize}")
        self.host = np.frombuffer(b"\xff" * self.host.nbytes, values.dtype).reshape(self.host.shape).copy()
        self.host[: values.shape[0], : values.shape[1]] = values
        self.pointer = call(cudart.cudaMalloc, self.host.nbytes)
        call(cudart.cudaMemcpy, self.pointer, self.host.ctypes.data, self.host.nbytes, cudart.cudaMemcpyKind(1))

    def read(self):
        """The elements, after copying everything back."""
        call(cudart.cudaMemcpy, self.host.ctypes.data, self.pointer, self.host.nbytes, cudart.cudaMemcpyKind(2))
        return self.host[: self.shape[0], : self.shape[1]]

    def surroundings_intact(self):
        raw = self.host.view(np.uint8).reshape(self.host.shape[0], -1)
        rows, row_bytes = self.shape[0], self.shape[1] * self.dtype.itemsize
        return bool((raw[rows:] == 0xFF).all() and (raw[:, row_bytes:] == 0xFF).all())

    def free(self):
        call(cudart.cudaFree, self.pointer)
        if scales := getattr(self, "scales", None):
            scales.free()


class Extras:
    """The epilogue's arguments for one shape: random numbers on the card, and the same ones for `finish`."""

    # Name, how it is spread over D, whether over halved columns, element type, stride, what it is reduced by
    ALL = (
        ("alpha", "scalar", False, np.float32, "", ""),
    )

    def __init__(self, m, n, rng):
        self.members, self.host, self.matrices = {}, {}, {}
        for name, spread, halved, dtype, stride, how in self.ALL:
            columns = n // 2 if halved else n
            shape = {"scalar": (), "row": (1, m), "column": (1, columns), "matrix": (m, columns)}[spread]
            values = np.zeros(shape, dtype) if how else np.asarray(rng.standard_normal(shape)).astype(dtype)
            if spread == "scalar":
                self.members[name], self.host[name] = float(values), values
                continue
            matrix = self.matrices[name] = DeviceMatrix(values, shape[1] + 3)
            self.members[name], self.host[name] = matrix.pointer, values.T if spread == "row" else values
            if stride:
                self.members[stride] = matrix.stride

    def finish(self, x):
        """What becomes of the product, in the precision of `x`."""
        real, e = x.dtype, {name: values.astype(x.dtype) for name, values in self.host.items()}
        with np.errstate(all="ignore"):
            x = e["alpha"] * x
        return x.astype(real)

    def reductions_wrong(self, exact, plain):
        """Reductions that err more than their elements may, twice as much as in the plain computation, and than sums of
        N terms in another order do: by about sqrt(N) roundings."""
        wrong = []
        for name, spread, _, _, _, how in self.ALL:
            if not how:
                continue
            axis = 1 if spread == "row" else 0
            reduce = (lambda x, a=axis: np.abs(x).max(a)) if how == "max_abs" else (lambda x, a=axis: x.sum(a))
            truth = reduce(exact)
            error = float(np.max(np.abs(self.matrices[name].read()[0].astype(np.float64) - truth)))
            limit = 2 * float(np.max(off(exact, plain)))
            if how == "sum":
                limit = 2 * float(np.max(off(exact, plain).sum(axis)))
                limit += float(np.max(np.abs(exact).sum(axis))) * 2.0**-23 * exact.shape[axis] ** 0.5
            if not error <= limit:
                wrong.append(f"{name}: error {error:.4g}, limit {limit:.4g}")
            if not self.matrices[name].surroundings_intact():
                wrong.append(f"wrote outside of {name}")
        return wrong

    def free(self):
        for matrix in self.matrices.values():
            matrix.free()


def off(exact, plain):
    """How far each element of a plain computation is off, and how far the roundings of the epilogue's steps alone, each
    by half a unit, may take it: where products and sums are exact, whose few roundings err less is chance."""
    return np.abs(plain - exact) + 1 * 2.0**-25 * np.abs(exact)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def erf(x):
    x = np.asarray(x)
    return np.vectorize(math.erf, otypes=[float])(x).astype(x.dtype)


def wait(case):
    """Waits for the card; a kernel that hangs ends the process, because nothing else can end the kernel."""
    deadline = time.monotonic() + WATCHDOG_SECONDS
    while (status := cudart.cudaStreamQuery(0)[0]) == cudart.cudaError_t.cudaErrorNotReady:
        if time.monotonic() > deadline:
            print(f"watchdog: {NAME} hangs on {case}", file=sys.stderr, flush=True)
            os._exit(4)
        time.sleep(0.0005)
    if status != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(f"{NAME} failed on {case}: {status.name}")


def arguments(a, b, d, k, extras):
    """What the kernel is launched with. Strides count elements."""
    given = Args(
        a.pointer, b.pointer, d.pointer, d.shape[0], d.shape[1], k, a.stride * 2, b.stride * 2, d.stride,
        a.scales.pointer, b.scales.pointer,
    )  # fmt: skip
    for name, value in extras.members.items():
        setattr(given, name, value)
    return given


def launch(a, b, d, k, extras):
    """D = A * B^T on the default stream; a stride that the TMA engine cannot take is named."""
    for name, matrix in (("a", a), ("b", b), ("d", d)):
        if name in TMA_OPERANDS and matrix.stride * matrix.dtype.itemsize % 16:
            raise ValueError(
                f"ld{name} = {matrix.stride}: rows of {matrix.stride * matrix.dtype.itemsize} bytes; the TMA engine "
                f"needs a multiple of 16, so ld{name} must be a multiple of {16 // matrix.dtype.itemsize}"
            )
    if error := library()(ctypes.byref(arguments(a, b, d, k, extras)), None):
        raise RuntimeError(f"{NAME}_launch: {cudart.cudaError_t(error).name}")


def truncated(x):
    """float64 to float32, toward zero."""
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float32)
    return np.where(np.abs(nearest) > np.abs(x), np.nextafter(nearest, np.float32(0)), nearest)


def references(a, b, extras):
    """D in float64, and in the kernel's own precision: the products of an MMA at a time are added to an fp32
    accumulator that is truncated, as the tensor core does, and the sum is rounded to D's type."""
    exact, plain = np.zeros((len(a), len(b))), np.zeros((len(a), len(b)), np.float32)
    for k in range(0, a.shape[1], MMA_K):
        part = a[:, k : k + MMA_K] @ b[:, k : k + MMA_K].T
        exact += part
        plain = truncated(plain + part)
    exact, plain = extras.finish(exact), extras.finish(plain)
    return exact, plain.astype(OUTPUT).astype(np.float64), plain


def padded(stored, operand, spread=0):
    """Columns that a row of the stored matrix takes: as few as the kernel can read, or more."""
    whole = 16 // stored.itemsize if operand in TMA_OPERANDS else 1
    return -(-stored.shape[1] // whole) * whole + spread * whole


def on_device(operand, host, spread=0):
    """A or B, with its scales where it has some."""
    matrix = DeviceMatrix(host.stored, padded(host.stored, operand, spread))
    matrix.scales = DeviceMatrix(host.scales, host.scales.shape[1])
    return matrix


def run_case(shape, numbers):
    """Runs one shape; returns (ok, error, limit, note). `numbers`: "normal" within twice the error of the same
    precision done plainly, "integers" exactly right (every product and sum fits the accumulator)."""
    m, n, k = shape
    rng = np.random.default_rng([SEED, m, n, k])
    draw = rng.standard_normal if numbers == "normal" else lambda size: rng.integers(-4, 5, size).astype(np.float64)
    host_a, host_b = Operand("a", draw((m, k))), Operand("b", draw((n, k)))
    spread = int(rng.integers(0, 3))
    width, extras = n, Extras(m, n, rng)
    poison = np.frombuffer(b"\xff" * (m * width * OUTPUT.itemsize), OUTPUT).reshape(m, width)
    a, b = on_device("a", host_a, spread), on_device("b", host_b, spread)
    d = DeviceMatrix(poison, padded(poison, "d", spread))
    try:
        launch(a, b, d, k, extras)
        wait(f"{shape} {numbers}")
        got = d.read().astype(np.float64)
        exact, plain, unrounded = references(host_a.values, host_b.values, extras)
        error, limit = float(np.max(np.abs(got - exact))), 2 * float(np.max(off(exact, plain)))
        if wrong := extras.reductions_wrong(exact, unrounded):
            return False, error, limit, "; ".join(wrong)
        if np.isnan(got).any():
            missing = int(np.isnan(got).sum())
            return False, float("nan"), limit, f"{missing} elements were not written, or read past an edge"
        if not d.surroundings_intact():
            return False, error, limit, "wrote outside of D"
        return error <= limit, error, limit, ""
    finally:
        for matrix in (a, b, d, extras):
            matrix.free()


def run_refusals():
    """Bad arguments come back as errors, and D stays untouched."""
    launch_c, problems = library(), []
    a, b = (on_device(o, Operand(o, np.zeros((rows, BLOCK_K)))) for o, rows in (("a", BLOCK_M), ("b", BLOCK_N)))
    d = DeviceMatrix(np.zeros((BLOCK_M, BLOCK_N), OUTPUT), BLOCK_N)
    extras = Extras(BLOCK_M, BLOCK_N, np.random.default_rng(SEED))
    whole = arguments(a, b, d, BLOCK_K, extras)
    good = {name: getattr(whole, name) for name, _ in Args._fields_}
    pointers = ["a", "b", "d", "sfa", "sfb"]
    cases = [({o: None}, INVALID) for o in pointers] + [({e: v}, INVALID) for e in "mnk" for v in (0, -1, 2**31)]
    cases += [({f"ld{o}": good[f"ld{o}"] - 8}, INVALID) for o in "abd"]
    cases += [({f"ld{o}": good[f"ld{o}"] + 1}, MISALIGNED) for o in TMA_OPERANDS]
    cases += [({o: good[o] + 8}, MISALIGNED) for o in [*TMA_OPERANDS, "sfa", "sfb"]]
    cases += [({"k": BLOCK_K - 1}, INVALID)]  # half a byte
    cases += [({name: None}, INVALID) for name in extras.matrices]
    cases += [({stride: good[stride] - 8}, INVALID) for _, _, _, _, stride, _ in Extras.ALL if stride]
    big = dict(lda=2 * BLOCK_K, ldb=2 * BLOCK_K, ldd=2 * BLOCK_N)
    cases += [(dict(m=m, n=n, k=k, **big), INVALID) for m, n, k in TOO_LARGE]
    d.host[:] = np.frombuffer(b"\xff" * d.host.nbytes, OUTPUT).reshape(d.host.shape)
    call(cudart.cudaMemcpy, d.pointer, d.host.ctypes.data, d.host.nbytes, cudart.cudaMemcpyKind(1))
    for change, expected in cases:
        args = Args(*({**good, **change}[name] for name, _ in Args._fields_))
        if (error := launch_c(ctypes.byref(args), None)) != int(expected):
            problems.append(f"{change}: {cudart.cudaError_t(error).name} instead of {expected.name}")
    if launch_c(None, None) != int(INVALID):
        problems.append("a null argument struct was not refused")
    wait("refusals")
    if not (d.read().view(np.uint8) == 0xFF).all():
        problems.append("a refused call wrote to D")
    for matrix in (a, b, d):
        matrix.free()
    return not problems, 0.0, 0.0, "; ".join(problems)


def run_captured():
    """The first call of a fresh process goes into a CUDA graph; the graph's result must be right."""
    command = [sys.executable, __file__, "--captured"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_SECONDS)
    return child.returncode == 0, 0.0, 0.0, child.stderr.strip()[-300:] if child.returncode else ""


def captured_child():
    shape = SHAPES[0] if TOO_LARGE else (2 * TILE_M, 2 * TILE_N, 2 * BLOCK_K)
    m, n, k = shape
    rng = np.random.default_rng(SEED)
    host_a, host_b = (Operand(o, rng.integers(-4, 5, s).astype(np.float64)) for o, s in (("a", (m, k)), ("b", (n, k))))
    a, b = on_device("a", host_a), on_device("b", host_b)
    result = np.zeros((m, n), OUTPUT)
    d = DeviceMatrix(result, padded(result, "d"))
    extras = Extras(m, n, rng)
    given = arguments(a, b, d, k, extras)
    stream = call(cudart.cudaStreamCreate)
    call(cudart.cudaStreamBeginCapture, stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal)
    error = library()(ctypes.byref(given), int(stream))
    graph = call(cudart.cudaStreamEndCapture, stream)
    if error:
        sys.exit(f"the launch failed under capture: {cudart.cudaError_t(error).name}")
    executable = call(cudart.cudaGraphInstantiate, graph, 0)
    call(cudart.cudaGraphLaunch, executable, stream)
    call(cudart.cudaStreamSynchronize, stream)
    exact, plain, _ = references(host_a.values, host_b.values, extras)
    right = np.max(np.abs(d.read().astype(np.float64) - exact)) <= 2 * np.max(np.abs(plain - exact))
    sys.exit(None if right else "the graph computed a wrong result")


CASES = {f"{m}x{n}x{k} {kind}": (run_case, (m, n, k), kind) for kind in ("normal", "integers") for m, n, k in SHAPES}
CASES |= {"refusals": (run_refusals,), "first call captured": (run_captured,)}


def test_cases(case):
    ok, error, limit, note = CASES[case][0](*CASES[case][1:])
    assert ok, f"{case}: error {error:.4g}, limit {limit:.4g} {note} (KGEN_SEED={SEED})"


def pytest_generate_tests(metafunc):
    metafunc.parametrize("case", CASES)


def setup_module():
    if reason := why_no_card():
        import pytest

        pytest.skip(f"nothing proven: {reason}", allow_module_level=True)


def main():
    as_json = "--json" in sys.argv
    if "--captured" in sys.argv:
        captured_child()
    if reason := why_no_card():
        print(json.dumps({"unproven": reason}) if as_json else f"nothing proven: {reason}")
        return 3
    failed = 0
    for case, (run, *arguments) in CASES.items():
        if as_json:
            print(json.dumps({"running": case}), flush=True)
        start = time.monotonic()
        try:
            ok, error, limit, note = run(*arguments)
        except Exception as e:  # a failed launch is a failed case; the others still run
            ok, error, limit, note = False, float("nan"), 0.0, f"{type(e).__name__}: {e}"
        failed += not ok
        if as_json:
            row = {"case": case, "ok": bool(ok), "error": error, "limit": limit, "note": note}
            print(json.dumps(row | {"seconds": round(time.monotonic() - start, 3)}), flush=True)
        else:
            print(f"{'ok   ' if ok else 'WRONG'} {case:32s} error {error:.3g} limit {limit:.3g} {note}")
    if not as_json:
        print(f"{len(CASES) - failed} of {len(CASES)} cases right (KGEN_SEED={SEED})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
