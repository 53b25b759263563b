if (args.m > BLOCK_M || args.n > BLOCK_N) return cudaErrorInvalidValue;  // one tile, one CTA
