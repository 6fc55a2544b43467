open("broken_module.py", "w").write("def f(:\n    pass\n")
import broken_module
