uint8_t *sfa, *sfb;
const auto atoms = [k](int64_t rows) { return (rows + 127) / 128 * ((k + ${ 4 * plan.scales.block - 1 }) / ${ 4 * plan.scales.block }); };
check(cudaMalloc(&sfa, atoms(m) * 512), "allocating the scales of A");
check(cudaMalloc(&sfb, atoms(n) * 512), "allocating the scales of B");
fill_scales<<<1024, 256>>>(sfa, atoms(m) * 512, 3);
fill_scales<<<1024, 256>>>(sfb, atoms(n) * 512, 4);
