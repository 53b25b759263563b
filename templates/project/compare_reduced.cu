// What a reduction should come to, by row or column of D: exactly, by how much its elements may be off together, and,
// for a sum, how much there is to add up in some other order.
struct Expected {
  double *truth, *off, *size;
};

struct AllExpected {
/*% for r in plan.reductions %*/
  Expected ${ r.op };
/*% endfor %*/
};

// Bits of a non-negative double order like an integer.
__device__ void keep_largest(double *most, double x) {
  atomicMax(reinterpret_cast<unsigned long long *>(most), static_cast<unsigned long long>(__double_as_longlong(x)));
}

/*% if plan.finish.reduces("sum") %*/
__device__ void expect_sum(const Expected &e, int64_t at, double exact, float plain) {
  atomicAdd(e.truth + at, exact), atomicAdd(e.off + at, off(exact, plain)), atomicAdd(e.size + at, fabs(exact));
}
/*% endif %*/
/*% if plan.finish.reduces("max_abs") %*/
__device__ void expect_max_abs(const Expected &e, int64_t at, double exact, float plain) {
  keep_largest(e.truth + at, fabs(exact)), keep_largest(e.off + at, off(exact, plain));
}
/*% endif %*/

// worst[0] becomes the largest error of a reduction, the others the largest of `off` and of `size`.
__global__ void compare_reduced(const float *got, Expected e, int64_t count, double *worst) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) {
    keep_largest(worst, fabs(got[i] - e.truth[i]));
    keep_largest(worst + 1, e.off[i]), keep_largest(worst + 2, e.size[i]);
  }
}

static Expected expect(int64_t count) {
  double *sums;
  check(cudaMalloc(&sums, 3 * count * sizeof(*sums)), "allocating what a reduction should be");
  check(cudaMemset(sums, 0, 3 * count * sizeof(*sums)), "clearing what a reduction should be");
  return {sums, sums + count, sums + 2 * count};
}

// Whether it errs by no more than twice what its elements do in the plain computation and, where `terms` are added up
// in another order, by about sqrt(terms) roundings.
static bool reduced_right(const char *name, const float *got, const Expected &e, int64_t count, int64_t terms) {
  double *found, worst[3];
  check(cudaMalloc(&found, sizeof(worst)), "allocating the result");
  check(cudaMemset(found, 0, sizeof(worst)), "clearing the result");
  compare_reduced<<<64, 256>>>(got, e, count, found);
  check(cudaGetLastError(), "launching the check of a reduction");
  check(cudaMemcpy(worst, found, sizeof(worst), cudaMemcpyDeviceToHost), "reading the result");
  const double limit = 2 * worst[1] + worst[2] / (1 << 23) * sqrt(double(terms)) + 1e-30;
  const bool right = worst[0] <= limit;
  printf("%s: error %.3g, limit %.3g: %s\n", name, worst[0], limit, right ? "right" : "WRONG");
  return right;
}
