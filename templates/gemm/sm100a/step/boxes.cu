tcgen05_descriptor_mn(${ operand } + k * BOX_MN)
