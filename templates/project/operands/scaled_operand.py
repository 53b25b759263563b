def scale_atoms(codes):
    """Scale codes [rows, blocks along k] as the kernel reads them: atoms of 512 bytes, each for 128 rows and 4 blocks,
    in which row r and block s are at (r % 32) * 16 + (r / 32) * 4 + s; atoms along k follow one another, then come
    those of the next 128 rows. What is added at the ends is zero."""
    rows, blocks = codes.shape
    padded = np.zeros((-(-rows // 128) * 128, -(-blocks // 4) * 4), np.uint8)
    padded[:rows, :blocks] = codes
    atoms = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4)  # 128 rows, quarter, row in it, atom, block
    return np.ascontiguousarray(atoms.transpose(0, 3, 2, 1, 4)).reshape(len(atoms), -1)


class Operand:
    """A or B: `stored` as the matrix lies in memory, `values` [rows, k] the numbers it stands for, `scales` in atoms.

    Integers are kept as they are, under scales that are powers of two, so that every product and sum is exact.
    """

    def __init__(self, operand, numbers):
        rows, k = numbers.shape
        blocks = np.zeros((rows, -(-k // BLOCK), BLOCK))
        blocks.reshape(rows, -1)[:, :k] = numbers
        if exact := bool((numbers == np.rint(numbers)).all()):
            codes = scale_codes(LARGEST * np.exp2(np.arange(rows)[:, None] % 3 - np.arange(blocks.shape[1]) % 2))
        else:
            codes = scale_codes(np.abs(blocks).max(axis=2))
        each = np.repeat(scale_values(codes), BLOCK, axis=1)[:, :k]
        self.scales = scale_atoms(codes)
