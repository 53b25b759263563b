using InputA = ${ plan.inputs[0].ctype };
using InputB = ${ plan.inputs[1].ctype };
