import bisect
import collections
import functools
import heapq
import itertools
import operator

print(collections.Counter("mississippi").most_common(2), collections.deque([1, 2], 2))
print(collections.OrderedDict(a=1), collections.ChainMap({"a": 1}, {"b": 2})["b"])
print(list(itertools.batched([1, 2, 3], 2)) if hasattr(itertools, "batched") else "3.11")
print(list(itertools.pairwise("abc")), list(itertools.permutations("ab")), heapq.nlargest(2, [1, 3, 2]))


@functools.lru_cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(80), fib.cache_info(), bisect.bisect([1, 2, 3], 2), operator.itemgetter(1)([5, 6]))


@functools.singledispatch
def kind(x):
    return "any"


@kind.register
def _(x: int):
    return "int"


print(kind(1), kind("s"), functools.reduce(operator.mul, range(1, 6)))
