// The stage to use next and the parity of its phase. It runs on from tile to tile, so K need not fill whole rings.
struct RingCursor {
  int stage = 0;
  uint32_t phase = 0;
  DEVICE void advance() {
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    phase ^= stage == 0;
  }
};
