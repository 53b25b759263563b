using Input = ${ plan.input.unit };${ "  // " ~ plan.input_names if plan.input.storage }
using Output = ${ plan.output.ctype };

/*% for group in plan.constants %*/
/*% for line in constant_lines(group) %*/
${ line }
/*% endfor %*/
/*% if not loop.last %*/

/*% endif %*/
/*% endfor %*/
