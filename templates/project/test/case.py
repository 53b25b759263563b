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
        error, limit = float(np.max(np.abs(got - exact))), 2 * float(np.max(off(exact, plain)))
        if wrong := extras.reductions_wrong(exact, unrounded):
            return False, error, limit, "; ".join(wrong)
/*% else %*/
        exact, plain = references(host_a.values, host_b.values)
        if numbers == "integers":
            expected = ${ part("project/test/to_output.py", x="exact") }.astype(np.float64)
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
