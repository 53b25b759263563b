struct SharedStorage {
/*% for r in plan.smem.regions %*/
  ${ r.ctype } ${ r.name }/*% for e in r.extents %*/[${ e }]/*% endfor %*/;  // ${ r.why }
/*% endfor %*/
};
static_assert(sizeof(SharedStorage) == ${ plan.smem.bytes } && sizeof(SharedStorage) <= SMEM_BYTES, "the map above");
constexpr int SMEM_ALIGNMENT = ${ plan.smem.alignment };  // where the 128-byte swizzle pattern starts anew
