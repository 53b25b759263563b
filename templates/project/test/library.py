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
