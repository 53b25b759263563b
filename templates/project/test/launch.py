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
