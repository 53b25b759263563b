/* gemm_split_k: D[m,n] = sum over k of A[m,k] * B[n,k] on B200 (sm_100a).
 * bf16 in, fp32 accumulate, bf16 out. Plain C; copy this file and gemm_split_k.cu to vendor the kernel. */
#ifndef GEMM_SPLIT_K_H
#define GEMM_SPLIT_K_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct gemm_split_k_args {
  const void *a; /* [m, k] bf16 */
  const void *b; /* [n, k] bf16 */
  void *d;       /* [m, n] bf16 */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
  void *workspace; /* gemm_split_k_workspace_bytes(m, n) bytes of device memory */
};

/* Bytes of `workspace` for D of [m, n], whatever k. It must be zero before the first launch that uses it, and serves
 * one launch at a time; every launch leaves it ready for the next one of the same m and n. */
int64_t gemm_split_k_workspace_bytes(int64_t m, int64_t n);

/* Enqueues D = A * B^T on `stream`. Allocates nothing, keeps no state, and may be captured into a CUDA graph.
 *
 * Returns cudaSuccess, or launches nothing and returns
 *   cudaErrorInvalidValue            null pointer, an extent below 1, a stride shorter than a row
 *   cudaErrorMisalignedAddress       a, b, d, workspace: address or row stride is no multiple of 16 bytes
 *   cudaErrorNoKernelImageForDevice  the current device is not of compute capability 10.0
 *   or what the CUDA runtime reports. */
cudaError_t gemm_split_k_launch(const struct gemm_split_k_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
