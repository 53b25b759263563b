using TensorMapEncoder = decltype(&cuTensorMapEncodeTiled);

// The driver's encoder, found at run time so that nothing need link against libcuda.
cudaError_t find_encoder(TensorMapEncoder &encode) {
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
  encode = reinterpret_cast<TensorMapEncoder>(entry);
  return error != cudaSuccess || found == cudaDriverEntryPointSuccess ? error : cudaErrorNotSupported;
}

// Describes a row-major [rows, columns] matrix to the TMA engine, moved in 128-byte swizzled boxes.
cudaError_t encode_matrix(TensorMapEncoder encode, CUtensorMap &map, CUtensorMapDataType type, int element_bytes,
                          const void *matrix, int64_t rows, int64_t columns, int64_t stride, uint32_t box_rows,
                          uint32_t box_columns) {
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(stride * element_bytes);
  const cuuint32_t box[] = {box_columns, box_rows}, steps[] = {1, 1};
  if (reinterpret_cast<uintptr_t>(matrix) % 16 != 0 || row_bytes % 16 != 0) return cudaErrorMisalignedAddress;
  const CUresult result = encode(&map, type, 2, const_cast<void *>(matrix), extents, &row_bytes, box, steps,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
