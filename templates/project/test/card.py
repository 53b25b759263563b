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
