code = compile("def g():\n    1 / 0\ng()", "<generated>", "exec")
exec(code)
