/*% if plan.tensor_maps %*/
${ part("gemm/common/launcher/encode.cu") }

/*% endif %*/
/*% if "workspace" in plan.parts %*/
${ part(plan.parts.workspace) }

/*% endif %*/
static cudaError_t launch(const ${ plan.name }_args &args, cudaStream_t stream) {
  constexpr int64_t MAX_EXTENT = 0x7fff0000;  // coordinates are int, and the last tile may reach past the edge
  if (!args.a || !args.b || !args.d || args.m < 1 || args.n < 1 || args.k < 1) return cudaErrorInvalidValue;
  if (args.m > MAX_EXTENT || args.n > MAX_EXTENT || args.k > MAX_EXTENT) return cudaErrorInvalidValue;
  if (args.lda < args.${ plan.row_of("a") } || args.ldb < args.${ plan.row_of("b") } || args.ldd < args.${ plan.d_columns }) return cudaErrorInvalidValue;
/*% if "packed" in plan.parts %*/
  ${ part(plan.parts.packed, depth=1) }
/*% endif %*/
/*% if plan.scales %*/
  if (!args.sfa || !args.sfb) return cudaErrorInvalidValue;
/*% endif %*/
/*% if plan.pairs %*/
  if (args.n % 2 != 0) return cudaErrorInvalidValue;  // columns of the product in pairs
/*% endif %*/
/*% for line in finish_refusals %*/
  ${ line }
/*% endfor %*/
/*% if "limit" in plan.parts %*/
  ${ part(plan.parts.limit, depth=1) }
/*% endif %*/
/*% if "workspace" in plan.parts %*/
  if (!args.workspace) return cudaErrorInvalidValue;
  if (reinterpret_cast<uintptr_t>(args.workspace) % 16 != 0) return cudaErrorMisalignedAddress;
/*% endif %*/
  int device = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (!error) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (!error) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (!error && (major != ${ plan.arch.compute_capability[0] } || minor != ${ plan.arch.compute_capability[1] })) error = cudaErrorNoKernelImageForDevice;
  int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k${ plan.per_unit });
/*% for name in plan.parameters if name in launcher_locals %*/
  ${ launcher_locals[name] }
/*% endfor %*/
/*% set width = "columns" if plan.pairs else "n" %*/
/*% if plan.pairs and "stage" in plan.parts %*/
  const int columns = ${ plan.d_columns };  // of D
/*% endif %*/
/*% if "stage" in plan.parts %*/
  const int64_t whole = (${ width } < STORE_STEP ? 1 : ${ width } / STORE_STEP) * STORE_STEP;${ "" if plan.pairs else "  // columns; store_tail writes the rest" }
/*% endif %*/
/*% for t in plan.tensor_maps if t.stride %*/
/*% set element = "Output" if t.operand == "d" else "Input" %*/
/*% set columns = "whole" if t.operand == "d" else t.columns %*/
  CUtensorMap ${ t.name } = tensor_map(error, ${ t.dtype }, sizeof(${ element }), args.${ t.operand }, ${ t.rows }, ${ columns },
                                 args.${ t.stride }${ t.per_unit }, ${ t.box_rows_expr }, ${ t.box_columns_expr });
/*% endfor %*/
/*% if plan.scales %*/
  ${ part("gemm/common/launcher/scale_maps.cu", depth=1) }
/*% endif %*/
/*% for line in finish_launch %*/
  ${ line }
/*% endfor %*/
  ${ part(plan.parts.grid, depth=1) }
  if (!error) error = cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  if (error) return error;
  void *parameters[] = {${ "&" ~ (plan.parameters | join(", &")) }};
  return cudaLaunchKernel(reinterpret_cast<const void *>(gemm), grid, NUM_THREADS, parameters, SMEM_BYTES, stream);
}
