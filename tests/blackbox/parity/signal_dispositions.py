import signal

for s in sorted(signal.valid_signals()):
    h = signal.getsignal(s)
    name = s.name if isinstance(s, signal.Signals) else s
    print(name, h.name if isinstance(h, signal.Handlers) else h)
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending())
print(signal.set_wakeup_fd(-1), signal.getitimer(signal.ITIMER_REAL))
