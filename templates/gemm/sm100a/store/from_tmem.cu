tcgen05_load(v, acc + (first_lane << 16) + c);
tcgen05_wait_load();
/*% if "release" in plan.parts %*/
if (c + CHUNK == BLOCK_N) release(acc_empty);  // all read: the next tile may be multiplied into it
/*% endif %*/
