struct SharedStorage {
/*% for line in storage_lines %*/
  ${ line }
/*% endfor %*/
};
static_assert(sizeof(SharedStorage) == ${ plan.smem.bytes } && SMEM_BYTES >= ${ plan.smem.bytes }, "the map above");
