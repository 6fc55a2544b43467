import json
import pickle

deep = []
for _ in range(500):
    deep = [deep]
print(json.dumps(deep).count("["), len(pickle.dumps(deep)) > 0, repr(deep).count("["))
bad = []
for _ in range(100000):
    bad = [bad]
for f in (json.dumps, repr, pickle.dumps):
    try:
        f(bad)
    except RecursionError as e:
        print(type(e).__name__)
