const float *partials, int splits,
