int sms = 0;
if (!error) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
const int ctas = sms * CTAS_PER_SM;
