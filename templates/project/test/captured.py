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
    sys.exit(None if np.array_equal(d.read(), ${ part("project/test/to_output.py", x="exact") }) else "the graph computed a wrong result")
/*% endif %*/
