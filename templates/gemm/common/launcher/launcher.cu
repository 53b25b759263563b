/*% if plan.tensor_maps %*/
${ part("gemm/common/launcher/encode.cu") }

/*% endif %*/
cudaError_t launch(const ${ plan.name }_args &args, cudaStream_t stream) {
  constexpr int64_t MAX_EXTENT = 0x7fff0000;  // coordinates are int, and the last tile may reach past the edge
  if (args.a == nullptr || args.b == nullptr || args.d == nullptr) return cudaErrorInvalidValue;
  for (int64_t extent : {args.m, args.n, args.k})
    if (extent < 1 || extent > MAX_EXTENT) return cudaErrorInvalidValue;
  if (args.lda < args.k || args.ldb < args.k || args.ldd < args.n) return cudaErrorInvalidValue;
/*% if "limit" in plan.parts %*/
  ${ part(plan.parts.limit, depth=1) }
/*% endif %*/
  int device = 0, major = 0, minor = 0;
  if (cudaError_t error = cudaGetDevice(&device)) return error;
  if (cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) return error;
  if (cudaError_t error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device)) return error;
  if (major != ${ plan.arch.compute_capability[0] } || minor != ${ plan.arch.compute_capability[1] }) return cudaErrorNoKernelImageForDevice;

  int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k);
/*% for name in plan.parameters if name in launcher_locals %*/
  ${ launcher_locals[name] }
/*% endfor %*/
/*% if plan.tensor_maps %*/
  CUtensorMap ${ plan.tensor_maps | map(attribute="name") | join(", ") };
  TensorMapEncoder encode;
  cudaError_t error = find_encoder(encode);
/*% if "stage" in plan.parts %*/
  const int64_t whole_columns = (n < STORE_STEP ? 1 : n / STORE_STEP) * STORE_STEP;  // store_tail writes the rest
/*% endif %*/
/*% for t in plan.tensor_maps %*/
  if (error == cudaSuccess)
    error = encode_matrix(encode, ${ t.name }, ${ t.dtype }, ${ t.element_bytes }, args.${ t.operand }, ${ t.rows },
                          ${ "whole_columns" if t.operand == "d" else t.columns }, args.${ t.stride }, ${ t.box_rows_expr }, ${ t.box_columns_expr });
/*% endfor %*/
  if (error != cudaSuccess) return error;
/*% endif %*/

  ${ part(plan.parts.grid, depth=1) }
  if (cudaError_t refused = cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES))
    return refused;
  void *parameters[] = {${ "&" ~ (plan.parameters | join(", &")) }};
  return cudaLaunchKernel(reinterpret_cast<const void *>(gemm), grid, NUM_THREADS, parameters, SMEM_BYTES, stream);
}
