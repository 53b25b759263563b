/* gemm_tf32: D[m,n] = sum over k of A[m,k] * B[n,k] on B200 (sm_100a).
 * tf32 in, fp32 accumulate, fp32 out. Plain C; copy this file and gemm_tf32.cu to vendor the kernel. */
#ifndef GEMM_TF32_H
#define GEMM_TF32_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct gemm_tf32_args {
  const void *a; /* [m, k] tf32 */
  const void *b; /* [n, k] tf32 */
  void *d;       /* [m, n] fp32 */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
};

/* Enqueues D = A * B^T on `stream`. Allocates nothing, keeps no state, and may be captured into a CUDA graph.
 *
 * Returns cudaSuccess, or launches nothing and returns
 *   cudaErrorInvalidValue            null pointer, an extent below 1, a stride shorter than a row
 *   cudaErrorMisalignedAddress       a, b, d: address or row stride is no multiple of 16 bytes
 *   cudaErrorNoKernelImageForDevice  the current device is not of compute capability 10.0
 *   or what the CUDA runtime reports. */
cudaError_t gemm_tf32_launch(const struct gemm_tf32_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
