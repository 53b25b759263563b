// A place in a ring of DEPTH and the parity of its phase. It runs on from tile to tile, so K need not fill whole rings.
template <int DEPTH> struct Cursor {
  int slot = 0;
  uint32_t phase = 0;
  DEVICE void advance() {
    slot = slot + 1 == DEPTH ? 0 : slot + 1;
    phase ^= slot == 0;
  }
};
