/*% set d_width = "BLOCK_N // 2" if plan.pairs else "BLOCK_N" %*/
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
