using Input = ${ plan.input.unit };
using Output = ${ plan.output.ctype };

/*% for group in plan.constants %*/
/*% for line in constant_lines(group) %*/
${ line }
/*% endfor %*/
/*% if not loop.last %*/

/*% endif %*/
/*% endfor %*/
