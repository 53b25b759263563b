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
