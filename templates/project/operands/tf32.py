class Operand:
    """A or B: `stored` as the matrix lies in memory, `values` [rows, k] the numbers it stands for."""

    def __init__(self, operand, numbers):
        words = numbers.astype(np.float32).view(np.uint32)
        self.stored = (words & 0xFFFFE000).view(np.float32)  # the tensor core reads 10 bits of the fraction
        self.values = self.stored.astype(np.float64)
