// What the epilogue reads and where it leaves its sums.
struct Epilogue {
  int rows, columns;  // of D
/*% for line in finish_members %*/
  ${ line }
/*% endfor %*/
};

/*% if finish_before %*/
// An element of the product on its way into a pair.
DEVICE float prepare(float x, ${ "int row, int column, const Epilogue &e" }) {
/*% for line in finish_before %*/
  ${ line }
/*% endfor %*/
  return x;
}

/*% endif %*/
// What becomes of an element of D before it is rounded, in the order of the spec. Beyond D's edge, where nothing is
// stored, it reads the edge.
DEVICE float finish(float x, /*% if plan.pairs %*/float y, /*% endif %*/int row, int column, const Epilogue &e) {
/*% if finish_clamps_row %*/
  row = min(row, e.rows - 1);
/*% endif %*/
/*% if finish_clamps_column %*/
  column = min(column, e.columns - 1);
/*% endif %*/
/*% if finish_before %*/
  x = prepare(x, row, 2 * column, e);
  y = prepare(y, row, 2 * column + 1, e);
/*% endif %*/
/*% for line in finish_after %*/
  ${ line }
/*% endfor %*/
  return x;
}

${ part(plan.parts.finish) }
/*% for r in plan.finish.reductions %*/

${ part(plan.parts["reduce_" ~ r.along], r=r) }
/*% endfor %*/
