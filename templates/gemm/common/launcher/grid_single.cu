const dim3 grid(1);
