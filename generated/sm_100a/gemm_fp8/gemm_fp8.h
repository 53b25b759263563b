/* gemm_fp8: D[m,n] = sum over k of A[m,k] * B[n,k] on B200 (sm_100a).
 * e4m3 x e5m2 in, fp32 accumulate, bf16 out. Plain C; copy this file and gemm_fp8.cu to vendor the kernel. */
#ifndef GEMM_FP8_H
#define GEMM_FP8_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct gemm_fp8_args {
  const void *a; /* [m, k] e4m3 */
  const void *b; /* [n, k] e5m2 */
  void *d;       /* [m, n] bf16 */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
  /* the epilogue's */
  float alpha;
};

/* Enqueues D = A * B^T on `stream`. Allocates nothing, keeps no state, and may be captured into a CUDA graph.
 *
 * Returns cudaSuccess, or launches nothing and returns
 *   cudaErrorInvalidValue            null pointer, an extent below 1, a stride shorter than a row
 *   cudaErrorMisalignedAddress       a, b, d: address or row stride is no multiple of 16 bytes
 *   cudaErrorNoKernelImageForDevice  the current device is not of compute capability 10.0
 *   or what the CUDA runtime reports. */
cudaError_t gemm_fp8_launch(const struct gemm_fp8_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
