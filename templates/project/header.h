/* ${ plan.name }: D[m,n] = sum over k of A[m,k] * B[n,k] on ${ plan.arch.product } (${ plan.arch.name }).
 * ${ plan.input.name } in, fp32 accumulate, ${ plan.output.name } out. Plain C; copy this file and ${ plan.name }.cu to vendor the kernel. */
#ifndef ${ plan.name | upper }_H
#define ${ plan.name | upper }_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct ${ plan.name }_args {
  const void *a; /* [m, k] ${ plan.input.name } */
  const void *b; /* [n, k] ${ plan.input.name } */
  void *d;       /* [m, n] ${ plan.output.name } */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
/*% if plan.finish %*/
  /* the epilogue's */
/*% for line in finish_c_members %*/
  ${ line }
/*% endfor %*/
/*% endif %*/
};

/* Enqueues D = A * B^T on `stream`. Allocates nothing, keeps no state, and may be captured into a CUDA graph.
 *
 * Returns cudaSuccess, or launches nothing and returns
 *   cudaErrorInvalidValue            null pointer, an extent below 1, a stride shorter than a row${ ", more than one tile" if "limit" in plan.parts }
/*% if plan.tensor_maps %*/
 *   cudaErrorMisalignedAddress       ${ plan.tensor_maps | map(attribute="operand") | join(", ") }: address or row stride is no multiple of 16 bytes
/*% endif %*/
 *   cudaErrorNoKernelImageForDevice  the current device is not of compute capability ${ plan.arch.compute_capability | join(".") }
 *   or what the CUDA runtime reports. */
cudaError_t ${ plan.name }_launch(const struct ${ plan.name }_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
