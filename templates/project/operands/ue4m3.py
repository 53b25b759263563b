def scale_codes(largest):
    """ue4m3 codes of scales that bring `largest` of each block to about LARGEST."""
    return np.maximum(largest / LARGEST, 2.0**-6).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def scale_values(codes):
    return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
