class Extras:
    """The epilogue's arguments for one shape: random numbers on the card, and the same ones for `finish`."""

    # Name, how it is spread over D, whether over halved columns, element type, stride, what it is reduced by
    ALL = (
/*% for line in finish_table %*/
        ${ line }
/*% endfor %*/
    )

    def __init__(self, m, n, rng):
        self.members, self.host, self.matrices = {}, {}, {}
        for name, spread, halved, dtype, stride, how in self.ALL:
            columns = n // 2 if halved else n
            shape = {"scalar": (), "row": (1, m), "column": (1, columns), "matrix": (m, columns)}[spread]
            values = np.zeros(shape, dtype) if how else np.asarray(rng.standard_normal(shape)).astype(dtype)
            if spread == "scalar":
                self.members[name], self.host[name] = float(values), values
                continue
            matrix = self.matrices[name] = DeviceMatrix(values, shape[1] + 3)
            self.members[name], self.host[name] = matrix.pointer, values.T if spread == "row" else values
            if stride:
                self.members[stride] = matrix.stride

    def finish(self, x):
        """What becomes of the product, in the precision of `x`."""
        real, e = x.dtype, {name: values.astype(x.dtype) for name, values in self.host.items()}
        with np.errstate(all="ignore"):
/*% for line in finish_numpy %*/
            ${ line }
/*% endfor %*/
        return x.astype(real)

    def reductions_wrong(self, exact, plain):
        """Reductions that err more than their elements may, twice as much as in the plain computation, and than sums of
        N terms in another order do: by about sqrt(N) roundings."""
        wrong = []
        for name, spread, _, _, _, how in self.ALL:
            if not how:
                continue
            axis = 1 if spread == "row" else 0
            reduce = (lambda x, a=axis: np.abs(x).max(a)) if how == "max_abs" else (lambda x, a=axis: x.sum(a))
            truth = reduce(exact)
            error = float(np.max(np.abs(self.matrices[name].read()[0].astype(np.float64) - truth)))
            limit = 2 * float(np.max(off(exact, plain)))
            if how == "sum":
                limit = 2 * float(np.max(off(exact, plain).sum(axis)))
                limit += float(np.max(np.abs(exact).sum(axis))) * 2.0**-23 * exact.shape[axis] ** 0.5
            if not error <= limit:
                wrong.append(f"{name}: error {error:.4g}, limit {limit:.4g}")
            if not self.matrices[name].surroundings_intact():
                wrong.append(f"wrote outside of {name}")
        return wrong

    def free(self):
        for matrix in self.matrices.values():
            matrix.free()


def off(exact, plain):
    """How far each element of a plain computation is off, and how far the roundings of the epilogue's steps alone, each
    by half a unit, may take it: where products and sums are exact, whose few roundings err less is chance."""
    return np.abs(plain - exact) + ${ plan.finish.roundings } * 2.0**-25 * np.abs(exact)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def erf(x):
    x = np.asarray(x)
    return np.vectorize(math.erf, otypes=[float])(x).astype(x.dtype)
