// Checks ${ plan.name } against a naive kernel on the device, then times it: ./${ plan.name } [m n k]
// Exit code: 0 right, 1 wrong, 2 an error, 3 no ${ plan.arch.product } in this machine, 4 the kernel hung.
#include "${ plan.name }.h"

/*% for header in plan.program_headers %*/
#include <${ header }>
/*% endfor %*/
#include <cuda_runtime.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

${ part("project/operands/types.cu") }
using Output = ${ plan.output.ctype };

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

${ part(plan.parts.operands_cu) }

/*% if plan.finish %*/
${ part("project/compare_finished.cu") }
/*% else %*/
// errors[0] becomes the largest error of D, errors[1] that of the same arithmetic done plainly: products summed as an
// MMA does into an fp32 accumulator that is truncated, as the tensor core does, then rounded to D's type. Bits of a
// non-negative double order like an integer, and a NaN orders above every number.
__global__ void compare(${ plan.name }_args g, unsigned long long *errors) {
  const Output *d = static_cast<const Output *>(g.d);
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < g.m * g.n; i += stride) {
    const int64_t row = i / g.n, column = i % g.n;
    double exact = 0;
    float plain = 0;
    for (int64_t k0 = 0; k0 < g.k; k0 += ${ plan.mma_shape[2] }) {
      double sum = 0;
      for (int64_t k = k0; k < g.k && k < k0 + ${ plan.mma_shape[2] }; ++k)
        sum += double(value_a(g, row, k)) * double(value_b(g, column, k));
      exact += sum;
      plain = __double2float_rz(plain + sum);
    }
    const double got = fabs(double(float(d[row * g.ldd + column])) - exact);
    const double rounded = fabs(double(float(Output(plain))) - exact);
    atomicMax(&errors[0], static_cast<unsigned long long>(__double_as_longlong(got)));
    atomicMax(&errors[1], static_cast<unsigned long long>(__double_as_longlong(rounded)));
  }
}
/*% endif %*/

int main(int argc, char **argv) {
  if (argc != 1 && argc != 4) {
    fprintf(stderr, "usage: %s [m n k]\n", argv[0]);
    return 2;
  }
  const int64_t m = argc == 4 ? atoll(argv[1]) : ${ plan.problem[0] }, n = argc == 4 ? atoll(argv[2]) : ${ plan.problem[1] },
                k = argc == 4 ? atoll(argv[3]) : ${ plan.problem[2] };
  if (m < 1 || n < 1 || k < 1) {
    fprintf(stderr, "m, n and k must be positive\n");
    return 2;
  }
  const auto padded = [](int64_t columns) { return (columns + ${ plan.row_step - 1 }) / ${ plan.row_step } * ${ plan.row_step }; };  // rows start at 16-byte steps
  signal(SIGALRM, hung);
  alarm(WATCHDOG_SECONDS);

  void *a, *b;
  Output *d;
  unsigned long long *errors;
  const int64_t a_count = ${ plan.rows_of("a") } * padded(${ plan.row_of("a") }), b_count = ${ plan.rows_of("b") } * padded(${ plan.row_of("b") }), d_count = m * padded(${ plan.d_columns });
  check(cudaMalloc(&a, a_count * sizeof(InputA)${ plan.per_unit }), "allocating A");
  check(cudaMalloc(&b, b_count * sizeof(InputB)${ plan.per_unit }), "allocating B");
  check(cudaMalloc(&d, d_count * sizeof(Output)), "allocating D");
  check(cudaMalloc(&errors, 2 * sizeof(*errors)), "allocating the result");
  fill<<<1024, 256>>>(static_cast<InputA *>(a), a_count${ plan.per_unit }, 1);
  fill<<<1024, 256>>>(static_cast<InputB *>(b), b_count${ plan.per_unit }, 2);
/*% if plan.scales %*/
  ${ part("project/operands/make_scales.cu", depth=1) }
/*% endif %*/
  check(cudaMemset(d, 0xff, d_count * sizeof(Output)), "poisoning D");  // NaN wherever nothing is written
  check(cudaMemset(errors, 0, 2 * sizeof(*errors)), "clearing the result");

/*% if "workspace" in plan.parts %*/
  void *workspace;
  check(cudaMalloc(&workspace, ${ plan.name }_workspace_bytes(m, n)), "allocating the workspace");
  check(cudaMemset(workspace, 0, ${ plan.name }_workspace_bytes(m, n)), "clearing the workspace");
/*% endif %*/
/*% if plan.finish %*/
  ${ plan.name }_args args = {};
  args.a = a, args.b = b, args.d = d, args.m = m, args.n = n, args.k = k;
  args.lda = padded(${ plan.row_of("a") }), args.ldb = padded(${ plan.row_of("b") }), args.ldd = padded(${ plan.d_columns });
/*% else %*/
  const ${ plan.name }_args args = {a, b, d, m, n, k, padded(${ plan.row_of("a") }), padded(${ plan.row_of("b") }), padded(n)${ ", workspace" if "workspace" in plan.parts }${ ", sfa, sfb" if plan.scales }};
/*% endif %*/
/*% if plan.finish and "workspace" in plan.parts %*/
  args.workspace = workspace;
/*% endif %*/
/*% if plan.finish and plan.scales %*/
  args.sfa = sfa, args.sfb = sfb;
/*% endif %*/
/*% if plan.finish %*/
  ${ part("project/arguments.cu", depth=1) }
/*% endif %*/
  check(${ plan.name }_launch(&args, nullptr), "launching ${ plan.name }");
  check(cudaDeviceSynchronize(), "running ${ plan.name }");
/*% if plan.reductions %*/
  AllExpected all;
/*% endif %*/
/*% for r in plan.reductions %*/
  all.${ r.op } = expect(${ r.argument.count });
/*% endfor %*/
  compare<<<2048, 256>>>(args, ${ "all, " if plan.reductions }errors);
  check(cudaGetLastError(), "launching the check");
  check(cudaDeviceSynchronize(), "running the check");
  double worst[2];  // the bits that atomicMax ordered
  check(cudaMemcpy(worst, errors, sizeof(worst), cudaMemcpyDeviceToHost), "reading the result");
  const double error = worst[0], plain = worst[1];
  ${ "" if plan.reductions else "const " }bool right = error <= 2 * plain + 1e-30;
  printf("%lld x %lld x %lld: error %.3g, of the same arithmetic done plainly %.3g: %s\n", static_cast<long long>(m),
         static_cast<long long>(n), static_cast<long long>(k), error, plain, right ? "right" : "WRONG");
/*% for r in plan.reductions %*/
  right &= reduced_right("${ r.op }", args.${ r.op }, all.${ r.op }, ${ r.argument.count }, ${ r.terms });
/*% endfor %*/
  if (!right) return 1;

  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "creating an event");
  check(cudaEventCreate(&stop), "creating an event");
  constexpr int WARM_UP = 20, RUNS = 50;
  for (int run = -WARM_UP; run < RUNS; ++run) {
    if (run == 0) check(cudaEventRecord(start), "recording an event");
    check(${ plan.name }_launch(&args, nullptr), "launching ${ plan.name }");
  }
  check(cudaEventRecord(stop), "recording an event");
  check(cudaEventSynchronize(stop), "running ${ plan.name }");
  float milliseconds;
  check(cudaEventElapsedTime(&milliseconds, start, stop), "reading the time");
  const double seconds = milliseconds / 1e3 / RUNS;
  printf("%.1f us, %.1f TFLOP/s (one set of operands, clocks as they are; `kgen bench` compares)\n", seconds * 1e6,
         2.0 * m * n * k / seconds / 1e12);
  return 0;
}
