for (int slot = 0; slot < STAGES; ++slot) {  // no commit may signal a CTA that has left
  mbarrier_wait(smem.empty[ring.slot], ring.phase ^ 1);
  ring.advance();
}
