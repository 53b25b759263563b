tcgen05_descriptor(${ operand } + k)
