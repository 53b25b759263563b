/* gemm_mn_major: D[m,n] = sum over k of A[m,k] * B[n,k] on B200 (sm_100a).
 * bf16 in, fp32 accumulate, bf16 out. Plain C; copy this file and gemm_mn_major.cu to vendor the kernel. */
#ifndef GEMM_MN_MAJOR_H
#define GEMM_MN_MAJOR_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct gemm_mn_major_args {
  const void *a; /* [k, m] bf16 */
  const void *b; /* [k, n] bf16 */
  void *d;       /* [m, n] bf16 */
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
cudaError_t gemm_mn_major_launch(const struct gemm_mn_major_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
