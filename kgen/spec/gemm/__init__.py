"""The GEMM specs, one model per architecture: what one cannot do, its users never meet."""
