/*% macro to_output(x) %*/${ ("rounded(" ~ x ~ ")") if plan.output.saturates else (x ~ ".astype(OUTPUT)") }/*% endmacro %*/
/*% set d_width = "BLOCK_N // 2" if plan.pairs else "BLOCK_N" %*/
"""Checks ${ plan.name } on the card in this machine, over a matrix of shapes.

    pytest test_${ plan.name }.py           one test per case
    python test_${ plan.name }.py [--json]  a line per case; exit code 0 right, 1 wrong, 3 no card, 4 hung

Needs the library (`make`), numpy, ml_dtypes and cuda-python. Operands are fresh random numbers; KGEN_SEED repeats a
run. Every byte of D and around it is poisoned before the launch, and so is what lies around A and B.
"""

import ctypes
import json
/*% if plan.finish %*/
import math
/*% endif %*/
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from cuda.bindings import runtime as cudart

NAME = "${ plan.name }"
INPUT = np.dtype(${ plan.input.numpy })
OUTPUT = np.dtype(${ plan.output.numpy })
BLOCK_M, BLOCK_N, BLOCK_K = ${ plan.cta_tile | join(", ") }  # of one CTA
TILE_M, TILE_N = ${ plan.cluster_tile | join(", ") }  # of one cluster
MMA_K = ${ plan.mma_shape[2] }
STAGES = ${ plan.stages }
TMA_OPERANDS = ${ plan.tensor_maps | selectattr("stride") | map(attribute="operand") | list }  # rows of these must be 16 bytes apart
WATCHDOG_SECONDS = 60
/*% if "workspace" in plan.parts %*/
WORKSPACES = {}  # (m, n) -> address: one serves every launch of that size
/*% endif %*/
SEED = int(os.environ.get("KGEN_SEED", secrets.randbits(32)))
INVALID, MISALIGNED = cudart.cudaError_t.cudaErrorInvalidValue, cudart.cudaError_t.cudaErrorMisalignedAddress


class Args(ctypes.Structure):
    """struct ${ plan.name }_args; strides in elements."""

    _fields_ = [
        *((pointer, ctypes.c_void_p) for pointer in "abd"),
        *((number, ctypes.c_int64) for number in ("m", "n", "k", "lda", "ldb", "ldd")),
/*% if "workspace" in plan.parts %*/
        ("workspace", ctypes.c_void_p),
/*% endif %*/
/*% if plan.scales %*/
        *((pointer, ctypes.c_void_p) for pointer in ("sfa", "sfb")),
/*% endif %*/
/*% if plan.finish %*/
/*% for line in finish_ctypes %*/
        ${ line }
/*% endfor %*/
/*% endif %*/
    ]


${ part(plan.parts.shapes) }
/*% if "packed" in plan.parts %*/
SHAPES = [(m, n, k + k % 2) for m, n, k in SHAPES]  # two elements to a byte
/*% endif %*/


${ part(plan.parts.operands_py) }
/*% if plan.pairs %*/
SHAPES = [(m, n + n % 2, k) for m, n, k in SHAPES]  # columns of the product in pairs
/*% endif %*/


def library():
    path = Path(__file__).resolve().parent / "build" / f"lib{NAME}.so"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: not built yet; run `make` (or `kgen build`)")
    launch = getattr(ctypes.CDLL(str(path)), f"{NAME}_launch")
    launch.argtypes, launch.restype = (ctypes.POINTER(Args), ctypes.c_void_p), ctypes.c_int
    return launch


/*% if "workspace" in plan.parts %*/
def workspace(m, n):
    """Address of a workspace for D of [m, n]: zero, and kept for as long as this process runs."""
    path = Path(__file__).resolve().parent / "build" / f"lib{NAME}.so"
    size = getattr(ctypes.CDLL(str(path)), f"{NAME}_workspace_bytes")
    size.argtypes, size.restype = (ctypes.c_int64, ctypes.c_int64), ctypes.c_int64
    if (m, n) not in WORKSPACES:
        WORKSPACES[m, n] = call(cudart.cudaMalloc, size(m, n))
        call(cudart.cudaMemset, WORKSPACES[m, n], 0, size(m, n))
    return WORKSPACES[m, n]


/*% endif %*/
def why_no_card():
    """Why nothing can be proven here; None where a matching card is."""
    error, major = cudart.cudaDeviceGetAttribute(cudart.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor, 0)
    if error != cudart.cudaError_t.cudaSuccess:
        return f"no usable CUDA card: {error.name}"
    _, minor = cudart.cudaDeviceGetAttribute(cudart.cudaDeviceAttr.cudaDevAttrComputeCapabilityMinor, 0)
    if (major, minor) != ${ plan.arch.compute_capability }:
        here = f"the card has compute capability {major}.{minor}"
        return f"{here}; {NAME} is for ${ plan.arch.compute_capability | join(".") }"
    return None


def call(function, *args):
    error, *results = function(*args)
    if error != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(f"{function.__name__}: {error.name}")
    return results[0] if results else None


class DeviceMatrix:
    """A row-major matrix in device memory, with rows `stride` elements apart and guard rows below.

    Every byte that is no element is 0xff, which is NaN in ${ "D's type" if "packed" in plan.parts else "each of the element types" }: a kernel that reads past an edge
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
/*% if plan.scales %*/
        if scales := getattr(self, "scales", None):
            scales.free()
/*% endif %*/


/*% if plan.finish %*/
${ part("project/epilogue.py") }


/*% endif %*/
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


def arguments(a, b, d, k${ ", extras" if plan.finish }):
    """What the kernel is launched with. Strides count elements."""
    given = Args(
        a.pointer, b.pointer, d.pointer, d.shape[0], d.shape[1]${ " * 2" if plan.pairs }, k, a.stride${ " * " ~ plan.input.packed if "packed" in plan.parts }, b.stride${ " * " ~ plan.input.packed if "packed" in plan.parts }, d.stride,
/*% if "workspace" in plan.parts %*/
        workspace(d.shape[0], d.shape[1]${ " * 2" if plan.pairs }),
/*% endif %*/
/*% if plan.scales %*/
        a.scales.pointer, b.scales.pointer,
/*% endif %*/
    )  # fmt: skip
/*% if plan.finish %*/
    for name, value in extras.members.items():
        setattr(given, name, value)
/*% endif %*/
    return given


def launch(a, b, d, k${ ", extras" if plan.finish }):
    """D = A * B^T on the default stream; a stride that the TMA engine cannot take is named."""
    for name, matrix in (("a", a), ("b", b), ("d", d)):
        if name in TMA_OPERANDS and matrix.stride * matrix.dtype.itemsize % 16:
            raise ValueError(
                f"ld{name} = {matrix.stride}: rows of {matrix.stride * matrix.dtype.itemsize} bytes; the TMA engine "
                f"needs a multiple of 16, so ld{name} must be a multiple of {16 // matrix.dtype.itemsize}"
            )
    if error := library()(ctypes.byref(arguments(a, b, d, k${ ", extras" if plan.finish })), None):
        raise RuntimeError(f"{NAME}_launch: {cudart.cudaError_t(error).name}")


def truncated(x):
    """float64 to float32, toward zero."""
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float32)
    return np.where(np.abs(nearest) > np.abs(x), np.nextafter(nearest, np.float32(0)), nearest)


/*% if plan.output.saturates %*/
def rounded(x):
    """To D's type, saturating as the kernel does."""
    largest = float(ml_dtypes.finfo(OUTPUT).max)
    return np.clip(x, -largest, largest).astype(OUTPUT)


/*% endif %*/
def references(a, b${ ", extras" if plan.finish }):
    """${ "D" if plan.finish else "The product" } in float64, and in the kernel's own precision: the products of an MMA at a time are added to an fp32
    accumulator that is truncated, as the tensor core does, and the sum is rounded to D's type."""
    exact, plain = np.zeros((len(a), len(b))), np.zeros((len(a), len(b)), np.float32)
    for k in range(0, a.shape[1], MMA_K):
        part = a[:, k : k + MMA_K] @ b[:, k : k + MMA_K].T
        exact += part
        plain = truncated(plain + part)
/*% if plan.finish %*/
    exact, plain = extras.finish(exact), extras.finish(plain)
    return exact, ${ to_output("plain") }.astype(np.float64), plain
/*% else %*/
    return exact, ${ to_output("plain") }.astype(np.float64)
/*% endif %*/


def padded(stored, operand, spread=0):
    """Columns that a row of the stored matrix takes: as few as the kernel can read, or more."""
    whole = 16 // stored.itemsize if operand in TMA_OPERANDS else 1
    return -(-stored.shape[1] // whole) * whole + spread * whole


def on_device(operand, host, spread=0):
    """A or B, with its scales where it has some."""
    matrix = DeviceMatrix(host.stored, padded(host.stored, operand, spread))
/*% if plan.scales %*/
    matrix.scales = DeviceMatrix(host.scales, host.scales.shape[1])
/*% endif %*/
    return matrix


def run_case(shape, numbers):
    """Runs one shape; returns (ok, error, limit, note). `numbers`: "normal" within twice the error of the same
    precision done plainly, "integers" exactly right (every product and sum fits the accumulator)."""
    m, n, k = shape
    rng = np.random.default_rng([SEED, m, n, k])
    draw = rng.standard_normal if numbers == "normal" else lambda size: rng.integers(-4, 5, size).astype(np.float64)
    host_a, host_b = Operand("a", draw((m, k))), Operand("b", draw((n, k)))
    spread = int(rng.integers(0, 3))
/*% if plan.finish %*/
    width, extras = ${ "n // 2" if plan.pairs else "n" }, Extras(m, n, rng)
    poison = np.frombuffer(b"\xff" * (m * width * OUTPUT.itemsize), OUTPUT).reshape(m, width)
/*% else %*/
    poison = np.frombuffer(b"\xff" * (m * n * OUTPUT.itemsize), OUTPUT).reshape(m, n)
/*% endif %*/
    a, b = on_device("a", host_a, spread), on_device("b", host_b, spread)
    d = DeviceMatrix(poison, padded(poison, "d", spread))
    try:
        launch(a, b, d, k${ ", extras" if plan.finish })
        wait(f"{shape} {numbers}")
        got = d.read().astype(np.float64)
/*% if plan.finish %*/
        exact, plain, unrounded = references(host_a.values, host_b.values, extras)
        error, limit = float(np.max(np.abs(got - exact))), 2 * float(np.max(np.abs(plain - exact)))
        if wrong := extras.reductions_wrong(exact, unrounded):
            return False, error, limit, "; ".join(wrong)
/*% else %*/
        exact, plain = references(host_a.values, host_b.values)
        if numbers == "integers":
            expected = ${ to_output("exact") }.astype(np.float64)
            error, limit = float(np.max(np.abs(got - expected))), 0.0
        else:
            error, limit = float(np.max(np.abs(got - exact))), 2 * float(np.max(np.abs(plain - exact)))
/*% endif %*/
        if np.isnan(got).any():
            missing = int(np.isnan(got).sum())
            return False, float("nan"), limit, f"{missing} elements were not written, or read past an edge"
        if not d.surroundings_intact():
            return False, error, limit, "wrote outside of D"
        return error <= limit, error, limit, ""
    finally:
        for matrix in (a, b, d${ ", extras" if plan.finish }):
            matrix.free()


def run_refusals():
    """Bad arguments come back as errors, and D stays untouched."""
    launch_c, problems = library(), []
    a, b = (on_device(o, Operand(o, np.zeros((rows, BLOCK_K)))) for o, rows in (("a", BLOCK_M), ("b", BLOCK_N)))
    d = DeviceMatrix(np.zeros((BLOCK_M, ${ d_width }), OUTPUT), ${ d_width })
/*% if plan.finish %*/
    extras = Extras(BLOCK_M, BLOCK_N, np.random.default_rng(SEED))
/*% endif %*/
    whole = arguments(a, b, d, BLOCK_K${ ", extras" if plan.finish })
    good = {name: getattr(whole, name) for name, _ in Args._fields_}
    pointers = ["a", "b", "d"${ ', "sfa", "sfb"' if plan.scales }]
    cases = [({o: None}, INVALID) for o in pointers] + [({e: v}, INVALID) for e in "mnk" for v in (0, -1, 2**31)]
/*% if "workspace" in plan.parts %*/
    cases += [(dict(workspace=None), INVALID), (dict(workspace=good["workspace"] + 8), MISALIGNED)]
/*% endif %*/
    cases += [({f"ld{o}": good[f"ld{o}"] - 8}, INVALID) for o in "abd"]
    cases += [({f"ld{o}": good[f"ld{o}"] + 1}, MISALIGNED) for o in TMA_OPERANDS]
    cases += [({o: good[o] + 8}, MISALIGNED) for o in ${ '[*TMA_OPERANDS, "sfa", "sfb"]' if plan.scales else "TMA_OPERANDS" }]
/*% if "packed" in plan.parts %*/
    cases += [({"k": BLOCK_K - 1}, INVALID)]  # half a byte
/*% endif %*/
/*% if plan.finish %*/
    cases += [({name: None}, INVALID) for name in extras.matrices]
    cases += [({stride: good[stride] - 8}, INVALID) for _, _, _, _, stride, _ in Extras.ALL if stride]
/*% endif %*/
/*% if plan.pairs %*/
    cases += [(dict(n=BLOCK_N - 1), INVALID)]
/*% endif %*/
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
    result = np.zeros((m, ${ "n // 2" if plan.pairs else "n" }), OUTPUT)
    d = DeviceMatrix(result, padded(result, "d"))
/*% if plan.finish %*/
    extras = Extras(m, n, rng)
/*% endif %*/
    given = arguments(a, b, d, k${ ", extras" if plan.finish })
    stream = call(cudart.cudaStreamCreate)
    call(cudart.cudaStreamBeginCapture, stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal)
    error = library()(ctypes.byref(given), int(stream))
    graph = call(cudart.cudaStreamEndCapture, stream)
    if error:
        sys.exit(f"the launch failed under capture: {cudart.cudaError_t(error).name}")
    executable = call(cudart.cudaGraphInstantiate, graph, 0)
    call(cudart.cudaGraphLaunch, executable, stream)
    call(cudart.cudaStreamSynchronize, stream)
/*% if plan.finish %*/
    exact, plain, _ = references(host_a.values, host_b.values, extras)
    right = np.max(np.abs(d.read().astype(np.float64) - exact)) <= 2 * np.max(np.abs(plain - exact))
    sys.exit(None if right else "the graph computed a wrong result")
/*% else %*/
    exact, _ = references(host_a.values, host_b.values)
    sys.exit(None if np.array_equal(d.read(), ${ to_output("exact") }) else "the graph computed a wrong result")
/*% endif %*/


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
