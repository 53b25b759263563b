/*% macro sigmoid() %*/
DEVICE float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }
/*% endmacro %*/
/*% macro combine_sum() %*/
DEVICE float combine_sum(float total, float x) { return total + x; }
/*% endmacro %*/
/*% macro publish_sum() %*/
// Whose turn it is to add is left to chance, and so are the last bits of the total.
DEVICE void publish_sum(float *total, float x) { atomicAdd(total, x); }
/*% endmacro %*/
/*% macro combine_max_abs() %*/
DEVICE float combine_max_abs(float most, float x) { return fmaxf(most, fabsf(x)); }
/*% endmacro %*/
/*% macro publish_max_abs() %*/
// Bits of a non-negative float order like an integer.
DEVICE void publish_max_abs(float *most, float x) { atomicMax(reinterpret_cast<int *>(most), __float_as_int(x)); }
/*% endmacro %*/
