// Checks gemm_nvfp4 against a naive kernel on the device, then times it: ./gemm_nvfp4 [m n k]
// Exit code: 0 right, 1 wrong, 2 an error, 3 no B200 in this machine, 4 the kernel hung.
#include "gemm_nvfp4.h"

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

using InputA = uint8_t;
using InputB = uint8_t;
using Output = __nv_bfloat16;

constexpr unsigned WATCHDOG_SECONDS = 120;

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  const bool no_card = error == cudaErrorNoKernelImageForDevice || error == cudaErrorNoDevice;
  exit(no_card || error == cudaErrorInsufficientDriver ? 3 : 2);
}

static void hung(int) {
  const char message[] = "watchdog: the kernel did not finish\n";
  if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) _exit(2);
  _exit(4);
}

// A scale is an e4m3 without its sign; those made up here are from 1/2 to almost 2.
__device__ float scale_value(uint8_t code) {
  __nv_fp8_e4m3 number;
  number.__x = code;
  return float(number);
}
__device__ uint8_t made_up_scale(uint32_t bits) { return 0x30 + bits % 16; }

__device__ uint32_t hash(int64_t i, uint32_t seed) {
  uint32_t bits = (static_cast<uint32_t>(i) ^ seed << 24) * 2654435761u;
  return (bits ^ bits >> 15) * 2246822519u >> 8;
}

__global__ void fill_scales(uint8_t *scales, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) scales[i] = made_up_scale(hash(i, seed));
}

// The scale of element (row, k): in atoms of 128 rows and four blocks, those along k next to each other.
__device__ float scale_at(const void *scales, int64_t row, int64_t k, int64_t depth) {
  constexpr int BLOCK = 16, ATOM = 4 * BLOCK;
  const int64_t atom = row / 128 * ((depth + ATOM - 1) / ATOM) + k / ATOM;
  const int64_t byte = atom * 512 + row % 32 * 16 + row / 32 % 4 * 4 + k / BLOCK % 4;
  return scale_value(static_cast<const uint8_t *>(scales)[byte]);
}

// Any byte is two elements.
__global__ void fill(uint8_t *matrix, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) matrix[i] = static_cast<uint8_t>(hash(i, seed));
}

// e2m1: a sign, then two bits of exponent and one of fraction. The lower k is in the low half of a byte.
__device__ float e2m1(const void *matrix, int64_t element) {
  const int code = static_cast<const uint8_t *>(matrix)[element / 2] >> element % 2 * 4 & 15, exponent = code >> 1 & 3;
  const float fraction = (code & 1) * 0.5f;
  const float magnitude = exponent == 0 ? fraction : (1 + fraction) * (1 << (exponent - 1));
  return code & 8 ? -magnitude : magnitude;
}

__device__ float value_a(const gemm_nvfp4_args &g, int64_t row, int64_t k) {
  return e2m1(g.a, row * g.lda + k) * scale_at(g.sfa, row, k, g.k);
}
__device__ float value_b(const gemm_nvfp4_args &g, int64_t row, int64_t k) {
  return e2m1(g.b, row * g.ldb + k) * scale_at(g.sfb, row, k, g.k);
}

template <class Element> __global__ void fill_argument(Element *values, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) values[i] = Element(normal(i, seed));
}

// An element of the product: exactly, and by the same arithmetic done plainly, where products are summed as an MMA does
// into an fp32 accumulator that is truncated, as the tensor core does.
__device__ void product(const gemm_nvfp4_args &g, int64_t row, int64_t column, double &exact, float &plain) {
  exact = 0, plain = 0;
  for (int64_t k0 = 0; k0 < g.k; k0 += 64) {
    double sum = 0;
    for (int64_t k = k0; k < g.k && k < k0 + 64; ++k)
      sum += double(value_a(g, row, k)) * double(value_b(g, column, k));
    exact += sum;
    plain = __double2float_rz(plain + sum);
  }
}

template <typename Real> __device__ Real sigmoid(Real x) { return Real(1) / (Real(1) + exp(-x)); }

// The epilogue, in either precision.
template <typename Real>
__device__ Real finish(Real x, int64_t row, int64_t column, const gemm_nvfp4_args &g) {
  x = Real(float(g.alpha)) * x;
  return x;
}

// How far an element of a plain computation is off, and how far the roundings of the epilogue's steps alone, each by
// half a unit, may take it: where products and sums are exact, whose few roundings err less is chance.
__device__ double off(double exact, double plain) {
  return fabs(plain - exact) + 1 * 0x1p-25 * fabs(exact);
}

// errors[0] becomes the largest error of D, errors[1] what the same arithmetic done plainly and rounded to D's type may
// be off by.
// Bits of a non-negative double order like an integer, and a NaN orders above every number.
__global__ void compare(gemm_nvfp4_args g, unsigned long long *errors) {
  const Output *d = static_cast<const Output *>(g.d);
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  const int64_t columns = g.n;
  for (int64_t i = first; i < g.m * columns; i += stride) {
    const int64_t row = i / columns, column = i % columns;
    double x;
    float plain;
    product(g, row, column, x, plain);
    const double exact = finish(x, row, column, g);
    plain = finish(plain, row, column, g);
    const double got = fabs(double(float(d[row * g.ldd + column])) - exact);
    const double rounded = off(exact, float(Output(plain)));
    atomicMax(&errors[0], static_cast<unsigned long long>(__double_as_longlong(got)));
    atomicMax(&errors[1], static_cast<unsigned long long>(__double_as_longlong(rounded)));
  }
}

int main(int argc, char **argv) {
  if (argc != 1 && argc != 4) {
    fprintf(stderr, "usage: %s [m n k]\n", argv[0]);
    return 2;
  }
  const int64_t m = argc == 4 ? atoll(argv[1]) : 4096, n = argc == 4 ? atoll(argv[2]) : 4096,
                k = argc == 4 ? atoll(argv[3]) : 4096;
  if (m < 1 || n < 1 || k < 1) {
    fprintf(stderr, "m, n and k must be positive\n");
    return 2;
  }
  const auto padded = [](int64_t columns) { return (columns + 31) / 32 * 32; };  // rows start at 16-byte steps
  signal(SIGALRM, hung);
  alarm(WATCHDOG_SECONDS);

  void *a, *b;
  Output *d;
  unsigned long long *errors;
  const int64_t a_count = m * padded(k), b_count = n * padded(k), d_count = m * padded(n);
  check(cudaMalloc(&a, a_count * sizeof(InputA) / 2), "allocating A");
  check(cudaMalloc(&b, b_count * sizeof(InputB) / 2), "allocating B");
  check(cudaMalloc(&d, d_count * sizeof(Output)), "allocating D");
  check(cudaMalloc(&errors, 2 * sizeof(*errors)), "allocating the result");
  fill<<<1024, 256>>>(static_cast<InputA *>(a), a_count / 2, 1);
  fill<<<1024, 256>>>(static_cast<InputB *>(b), b_count / 2, 2);
  uint8_t *sfa, *sfb;
  const auto atoms = [k](int64_t rows) { return (rows + 127) / 128 * ((k + 63) / 64); };
  check(cudaMalloc(&sfa, atoms(m) * 512), "allocating the scales of A");
  check(cudaMalloc(&sfb, atoms(n) * 512), "allocating the scales of B");
  fill_scales<<<1024, 256>>>(sfa, atoms(m) * 512, 3);
  fill_scales<<<1024, 256>>>(sfb, atoms(n) * 512, 4);
  check(cudaMemset(d, 0xff, d_count * sizeof(Output)), "poisoning D");  // NaN wherever nothing is written
  check(cudaMemset(errors, 0, 2 * sizeof(*errors)), "clearing the result");

  gemm_nvfp4_args args = {};
  args.a = a, args.b = b, args.d = d, args.m = m, args.n = n, args.k = k;
  args.lda = padded(k), args.ldb = padded(k), args.ldd = padded(n);
  args.sfa = sfa, args.sfb = sfb;
  args.alpha = 0.75f;
  check(gemm_nvfp4_launch(&args, nullptr), "launching gemm_nvfp4");
  check(cudaDeviceSynchronize(), "running gemm_nvfp4");
  compare<<<2048, 256>>>(args, errors);
  check(cudaGetLastError(), "launching the check");
  check(cudaDeviceSynchronize(), "running the check");
  double worst[2];  // the bits that atomicMax ordered
  check(cudaMemcpy(worst, errors, sizeof(worst), cudaMemcpyDeviceToHost), "reading the result");
  const double error = worst[0], plain = worst[1];
  const bool right = error <= 2 * plain + 1e-30;
  printf("%lld x %lld x %lld: error %.3g, of the same arithmetic done plainly %.3g: %s\n", static_cast<long long>(m),
         static_cast<long long>(n), static_cast<long long>(k), error, plain, right ? "right" : "WRONG");
  if (!right) return 1;

  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "creating an event");
  check(cudaEventCreate(&stop), "creating an event");
  constexpr int WARM_UP = 20, RUNS = 50;
  for (int run = -WARM_UP; run < RUNS; ++run) {
    if (run == 0) check(cudaEventRecord(start), "recording an event");
    check(gemm_nvfp4_launch(&args, nullptr), "launching gemm_nvfp4");
  }
  check(cudaEventRecord(stop), "recording an event");
  check(cudaEventSynchronize(stop), "running gemm_nvfp4");
  float milliseconds;
  check(cudaEventElapsedTime(&milliseconds, start, stop), "reading the time");
  const double seconds = milliseconds / 1e3 / RUNS;
  printf("%.1f us, %.1f TFLOP/s (one set of operands, clocks as they are; `kgen bench` compares)\n", seconds * 1e6,
         2.0 * m * n * k / seconds / 1e12);
  return 0;
}
