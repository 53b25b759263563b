// Describes a row-major [rows, columns] matrix to the TMA engine, moved in 128-byte swizzled boxes. The driver's
// encoder is looked up at run time, so nothing need link against libcuda. `error` keeps what went wrong first.
static CUtensorMap tensor_map(cudaError_t &error, CUtensorMapDataType type, size_t element, const void *start,
                              int64_t rows, int64_t columns, int64_t stride, uint32_t box_rows, uint32_t box_columns/*% if plan.scales %*/,
                              CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B/*% endif %*/) {
  CUtensorMap map = {};
  void *entry = nullptr;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(stride) * element;
  const cuuint32_t box[] = {box_columns, box_rows}, steps[] = {1, 1};
  if (reinterpret_cast<uintptr_t>(start) % 16 != 0 || row_bytes % 16 != 0) error = cudaErrorMisalignedAddress;
  if (!error) error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault);
  if (!error && entry == nullptr) error = cudaErrorNotSupported;
  if (!error && reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
                    &map, type, 2, const_cast<void *>(start), extents, &row_bytes, box, steps,
                    CU_TENSOR_MAP_INTERLEAVE_NONE, ${ "swizzle" if plan.scales else "CU_TENSOR_MAP_SWIZZLE_128B" }, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    error = cudaErrorInvalidValue;
  return map;
}
