TYPES = {"a": np.dtype(${ plan.inputs[0].numpy }), "b": np.dtype(${ plan.inputs[1].numpy })}


class Operand:
    """A or B: `stored` as the matrix lies in memory, `values` [rows, k] the numbers it stands for."""

    def __init__(self, operand, numbers):
        largest = float(ml_dtypes.finfo(TYPES[operand]).max)
        self.stored = np.clip(numbers, -largest, largest).astype(TYPES[operand])
        self.values = self.stored.astype(np.float64)
