${ parameter_lines | join("\n     ") }
