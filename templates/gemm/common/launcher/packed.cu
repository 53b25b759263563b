if (args.k % 2 != 0) return cudaErrorInvalidValue;  // two elements to a byte
if (args.lda % 2 != 0 || args.ldb % 2 != 0) return cudaErrorMisalignedAddress;
