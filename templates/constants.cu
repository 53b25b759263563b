using Input = ${ plan.input.ctype };
using Output = ${ plan.output.ctype };

/*% for group in plan.constants %*/
/*% for c in group %*/
${ constant_line(c, group) }
/*% endfor %*/
/*% if not loop.last %*/

/*% endif %*/
/*% endfor %*/
