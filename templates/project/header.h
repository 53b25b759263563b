/* ${ plan.name }: D[m,n] = sum over k of A[m,k] * B[n,k] on ${ plan.arch.product } (${ plan.arch.name }).
 * ${ plan.input_names } in, fp32 accumulate, ${ plan.output.name } out. ${ "\n * " if plan.scales }Plain C; copy this file and ${ plan.name }.cu to vendor the kernel. */
#ifndef ${ plan.name | upper }_H
#define ${ plan.name | upper }_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct ${ plan.name }_args {
  const void *a; /* ${ plan.stored("a") } ${ plan.inputs[0].name }${ ", two to a byte, the lower k in the low half" if "packed" in plan.parts } */
  const void *b; /* ${ plan.stored("b") } ${ plan.inputs[1].name }${ ", two to a byte, the lower k in the low half" if "packed" in plan.parts } */
  void *d;       /* [m, n] ${ plan.output.name } */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
/*% if "workspace" in plan.parts %*/
  void *workspace; /* ${ plan.name }_workspace_bytes(m, n) bytes of device memory */
/*% endif %*/
/*% if plan.scales %*/
  const void *sfa, *sfb; /* ${ plan.scales.name } scales of A and B, one per ${ plan.scales.block } elements along K, in atoms: see below */
/*% endif %*/
/*% if plan.finish %*/
  /* the epilogue's */
/*% for line in finish_c_members %*/
  ${ line }
/*% endfor %*/
/*% endif %*/
};
/*% if plan.scales %*/

/* An atom is 512 bytes: the scales of 128 rows (of A or B) and 4 blocks along K. In it, row r and block s are at
 *   (r % 32) * 16 + (r / 32) * 4 + s
 * and atoms follow one another along K first, then by 128 rows: ceil(rows / 128) * ceil(k / ${ 4 * plan.scales.block }) of them. Scales of
 * blocks beyond k must be there and be numbers (0, say), those of rows beyond the last may be anything. */
/*% endif %*/

/*% if "workspace" in plan.parts %*/
/* Bytes of `workspace` for D of [m, n], whatever k. It must be zero before the first launch that uses it, and serves
 * one launch at a time; every launch leaves it ready for the next one of the same m and n. */
int64_t ${ plan.name }_workspace_bytes(int64_t m, int64_t n);

/*% endif %*/
/* Enqueues D = A * B^T on `stream`. Allocates nothing, keeps no state, and may be captured into a CUDA graph.
 *
 * Returns cudaSuccess, or launches nothing and returns
 *   cudaErrorInvalidValue            null pointer, an extent below 1, a stride shorter than a row${ ", an odd k" if "packed" in plan.parts }${ ", more than one tile" if "limit" in plan.parts }
/*% if plan.tensor_maps %*/
 *   cudaErrorMisalignedAddress       ${ plan.tensor_maps | selectattr("stride") | map(attribute="operand") | join(", ") }${ ", workspace" if "workspace" in plan.parts }: address or row stride is no multiple of 16 bytes
/*% endif %*/
 *   cudaErrorNoKernelImageForDevice  the current device is not of compute capability ${ plan.arch.compute_capability | join(".") }
 *   or what the CUDA runtime reports. */
cudaError_t ${ plan.name }_launch(const struct ${ plan.name }_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
