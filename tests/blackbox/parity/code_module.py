import ast
import code
import dis
import io
import tokenize

print(ast.unparse(ast.parse("x=1;y = [ 2 ]")), ast.dump(ast.parse("f(x)").body[0]))
i = code.InteractiveInterpreter({"a": 5})
i.runsource("print(a + 1)")
i.runsource("1/0")
i.runsource("a")
dis.dis(compile("x = 1", "<c>", "exec"))
print([t.string for t in tokenize.generate_tokens(io.StringIO("x = 1").readline)])
print(code.compile_command("if x:"))
