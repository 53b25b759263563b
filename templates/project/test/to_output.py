${ ("rounded(" ~ x ~ ")") if plan.output.saturates else (x ~ ".astype(OUTPUT)") }
