/* gemm_nvfp4: D[m,n] = sum over k of A[m,k] * B[n,k] on B200 (sm_100a).
 * e2m1 with one ue4m3 per 16 along K in, fp32 accumulate, bf16 out.
 * Plain C; copy this file and gemm_nvfp4.cu to vendor the kernel. */
#ifndef GEMM_NVFP4_H
#define GEMM_NVFP4_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device pointers to row-major matrices; strides are elements from one row to the next. */
struct gemm_nvfp4_args {
  const void *a; /* [m, k] e2m1, two to a byte, the lower k in the low half */
  const void *b; /* [n, k] e2m1, two to a byte, the lower k in the low half */
  void *d;       /* [m, n] bf16 */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
  const void *sfa, *sfb; /* ue4m3 scales of A and B, one per 16 elements along K, in atoms: see below */
  /* the epilogue's */
  float alpha;
};

/* An atom is 512 bytes: the scales of 128 rows (of A or B) and 4 blocks along K. In it, row r and block s are at
 *   (r % 32) * 16 + (r / 32) * 4 + s
 * and atoms follow one another along K first, then by 128 rows: ceil(rows / 128) * ceil(k / 64) of them. Scales of
 * blocks beyond k must be there and be numbers (0, say), those of rows beyond the last may be anything. */

/* Enqueues D = A * B^T on `stream`. Allocates nothing, keeps no state, and may be captured into a CUDA graph.
 *
 * Returns cudaSuccess, or launches nothing and returns
 *   cudaErrorInvalidValue            null pointer, an extent below 1, a stride shorter than a row, an odd k
 *   cudaErrorMisalignedAddress       a, b, d: address or row stride is no multiple of 16 bytes
 *   cudaErrorNoKernelImageForDevice  the current device is not of compute capability 10.0
 *   or what the CUDA runtime reports. */
cudaError_t gemm_nvfp4_launch(const struct gemm_nvfp4_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
