load_pairs(v, acc + (first_lane << 16) + 2 * c, ${ row }, ${ column }, e);
/*% if "release" in plan.parts %*/
if (c + CHUNK == OUT_N) release(acc_empty);  // all read: the next tile may be multiplied into it
/*% endif %*/
