/*% if plan.layout != ("k", "k") %*/
TURNED = [${ plan.turned }]  # stored with k as the row index


/*% endif %*/
class Operand:
    """A or B: `stored` as the matrix lies in memory, `values` [rows, k] the numbers it stands for."""

    def __init__(self, operand, numbers):
        self.stored = numbers.astype(INPUT)
        self.values = self.stored.astype(np.float64)
/*% if plan.layout != ("k", "k") %*/
        if operand in TURNED:
            self.stored = np.ascontiguousarray(self.stored.T)
/*% endif %*/
