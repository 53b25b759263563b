BLOCK = ${ plan.scales.block }  # elements along k under one scale
LARGEST = 6.0
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # of e2m1, by the low three bits of its code; bit 3 is the sign


${ part(plan.parts.scales_py) }


def e2m1_codes(numbers):
    """The nearest element of each number; a number halfway goes to the even code."""
    middle = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    below, above = np.searchsorted(middle, np.abs(numbers)), np.searchsorted(middle, np.abs(numbers), side="right")
    codes = np.where(below % 2 == 0, below, above)
    return (codes + 8 * np.signbit(numbers)).astype(np.uint8)


${ part("project/operands/scaled_operand.py") }
        codes = e2m1_codes(numbers if exact else numbers / each)
        self.values = MAGNITUDES[codes % 8] * np.where(codes < 8, 1, -1) * each
        self.stored = codes[:, ::2] | codes[:, 1::2] << 4  # the lower k in the low half
