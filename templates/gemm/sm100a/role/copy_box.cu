${ load }(smem.${ operand }[ring.slot], map_${ operand }, smem.full[ring.slot], k0, ${ row });
