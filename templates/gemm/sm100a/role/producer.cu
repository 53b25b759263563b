for (int k0 = ${ "range.begin" if "workspace" in plan.parts else 0 }; k0 < ${ "range.end" if "workspace" in plan.parts else "k" }; k0 += BLOCK_K) {
  mbarrier_wait(smem.empty[ring.slot], ring.phase ^ 1);  // the ring starts empty: the first lap must pass
  ${ part(plan.parts.fill, depth=1) }
  ring.advance();
}
