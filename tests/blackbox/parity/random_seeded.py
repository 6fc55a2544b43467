import random

random.seed(42)
print(random.random(), random.randint(1, 100), random.choice("abc"), random.sample(range(100), 3))
print(random.gauss(0, 1), random.shuffle([1]), random.Random("text").random())
state = random.getstate()
a = random.random()
random.setstate(state)
print(a == random.random(), random.SystemRandom().random() < 1)
