BLOCK = ${ plan.scales.block }  # elements along k under one scale
TYPES = {"a": np.dtype(${ plan.inputs[0].numpy }), "b": np.dtype(${ plan.inputs[1].numpy })}
LARGEST = 448.0


${ part(plan.parts.scales_py) }


${ part("project/operands/scaled_operand.py") }
        elements = (numbers if exact else numbers / each).astype(TYPES[operand])
        self.stored, self.values = elements, elements.astype(np.float64) * each
