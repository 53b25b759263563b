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
