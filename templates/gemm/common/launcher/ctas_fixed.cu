const int ctas = NUM_CTAS;
