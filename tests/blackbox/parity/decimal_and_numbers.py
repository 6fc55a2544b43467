import cmath
import decimal
import fractions
import math
import statistics
from decimal import Decimal as D

print(decimal.getcontext())
decimal.getcontext().prec = 5
print(D(1) / D(3), D("0.1") + D("0.2"))
try:
    D(1) / D(0)
except decimal.DivisionByZero as e:
    print(type(e).__name__)
with decimal.localcontext() as c:
    c.prec = 2
    print(D(2).sqrt())
print(fractions.Fraction(1, 3) + fractions.Fraction("0.25"), math.comb(50, 25), math.fsum([0.1] * 10))
print(0.1 + 0.2, 1e308 * 10, float("nan"), -0.0, 7 // -2, 7 % -2, divmod(-7, 2), 2**100)
print(round(2.5), round(2.675, 2), cmath.sqrt(-1), statistics.quantiles([1, 2, 3, 4]))
try:
    int("9" * 5000)
except ValueError as e:
    print(e)
