import faulthandler

faulthandler.enable(all_threads=False)
print("before", flush=True)
faulthandler._sigsegv()
