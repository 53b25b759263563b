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
    return exact, ${ part("project/test/to_output.py", x="plain") }.astype(np.float64), plain
/*% else %*/
    return exact, ${ part("project/test/to_output.py", x="plain") }.astype(np.float64)
/*% endif %*/
