/*% for a in plan.finish.scalars %*/
args.${ a.name } = 0.75f;
/*% endfor %*/
/*% for a in plan.finish.arrays %*/
${ a.dtype.ctype } *e_${ a.name };
check(cudaMalloc(&e_${ a.name }, ${ a.count } * sizeof(*e_${ a.name })), "allocating ${ a.name }");
/*% if a.written %*/
check(cudaMemset(e_${ a.name }, 0, ${ a.count } * sizeof(*e_${ a.name })), "clearing ${ a.name }");
/*% else %*/
fill_argument<<<1024, 256>>>(e_${ a.name }, ${ a.count }, ${ loop.index + 2 });
/*% endif %*/
args.${ a.name } = e_${ a.name };
/*% endfor %*/
/*% for a in plan.finish.matrices %*/
args.${ a.stride } = ${ a.columns };
/*% endfor %*/
