import unittest


class T(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(1, 1)

    def test_fails(self):
        self.assertEqual([1, 2], [1, 3])

    @unittest.skip("not now")
    def test_skipped(self):
        pass

    def test_subtests(self):
        for k in range(2):
            with self.subTest(k=k):
                self.assertIs(k, 0)


class R(unittest.TextTestRunner):
    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "stream": None, "verbosity": 2})

    def run(self, test):
        result = super().run(test)
        return result


import time

time.perf_counter = lambda: 0.0
unittest.main()
