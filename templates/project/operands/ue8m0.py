def scale_codes(largest):
    """ue8m0 codes of scales, powers of two, that bring `largest` of each block to at most LARGEST."""
    exponent = np.ceil(np.log2(np.maximum(largest, 2.0**-100) / LARGEST))
    return (exponent + 127).astype(np.uint8)


def scale_values(codes):
    return np.exp2(codes.astype(np.float64) - 127)
