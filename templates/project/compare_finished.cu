template <class Element> __global__ void fill_argument(Element *values, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) values[i] = Element(normal(i, seed));
}

// An element of the product: exactly, and by the same arithmetic done plainly, where products are summed as an MMA does
// into an fp32 accumulator that is truncated, as the tensor core does.
__device__ void product(const ${ plan.name }_args &g, int64_t row, int64_t column, double &exact, float &plain) {
  exact = 0, plain = 0;
  for (int64_t k0 = 0; k0 < g.k; k0 += ${ plan.mma_shape[2] }) {
    double sum = 0;
    for (int64_t k = k0; k < g.k && k < k0 + ${ plan.mma_shape[2] }; ++k)
      sum += double(value_a(g, row, k)) * double(value_b(g, column, k));
    exact += sum;
    plain = __double2float_rz(plain + sum);
  }
}

template <typename Real> __device__ Real sigmoid(Real x) { return Real(1) / (Real(1) + exp(-x)); }

/*% if finish_before %*/
template <typename Real> __device__ Real prepare(Real x, int64_t row, int64_t column, const ${ plan.name }_args &g) {
/*% for line in check_before %*/
  ${ line }
/*% endfor %*/
  return x;
}

/*% endif %*/
// The epilogue, in either precision.
template <typename Real>
__device__ Real finish(Real x, /*% if plan.pairs %*/Real y, /*% endif %*/int64_t row, int64_t column, const ${ plan.name }_args &g) {
/*% if finish_before %*/
  x = prepare(x, row, 2 * column, g), y = prepare(y, row, 2 * column + 1, g);
/*% endif %*/
/*% for line in check_after %*/
  ${ line }
/*% endfor %*/
  return x;
}

// How far an element of a plain computation is off, and how far the roundings of the epilogue's steps alone, each by
// half a unit, may take it: where products and sums are exact, whose few roundings err less is chance.
__device__ double off(double exact, double plain) {
  return fabs(plain - exact) + ${ plan.finish.roundings } * 0x1p-25 * fabs(exact);
}

/*% if plan.reductions %*/
${ part("project/compare_reduced.cu") }

/*% endif %*/
// errors[0] becomes the largest error of D, errors[1] what the same arithmetic done plainly and rounded to D's type may
// be off by.
// Bits of a non-negative double order like an integer, and a NaN orders above every number.
__global__ void compare(${ plan.name }_args g, ${ "AllExpected all, " if plan.reductions }unsigned long long *errors) {
  const Output *d = static_cast<const Output *>(g.d);
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  const int64_t columns = g.${ plan.d_columns };
  for (int64_t i = first; i < g.m * columns; i += stride) {
    const int64_t row = i / columns, column = i % columns;
    double x;
    float plain;
/*% if plan.pairs %*/
    double y;
    float plain_y;
    product(g, row, 2 * column, x, plain);
    product(g, row, 2 * column + 1, y, plain_y);
    const double exact = finish(x, y, row, column, g);
    plain = finish(plain, plain_y, row, column, g);
/*% else %*/
    product(g, row, column, x, plain);
    const double exact = finish(x, row, column, g);
    plain = finish(plain, row, column, g);
/*% endif %*/
/*% for r in plan.reductions %*/
    expect_${ r.how }(all.${ r.op }, ${ r.along }, exact, plain);
/*% endfor %*/
    const double got = fabs(double(float(d[row * g.ldd + column])) - exact);
    const double rounded = off(exact, float(Output(plain)));
    atomicMax(&errors[0], static_cast<unsigned long long>(__double_as_longlong(got)));
    atomicMax(&errors[1], static_cast<unsigned long long>(__double_as_longlong(rounded)));
  }
}
