int sms = 0;
if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
const int ctas = sms * CTAS_PER_SM;
