import unittest

import bill


class ShareTest(unittest.TestCase):
    def test_an_even_bill_is_shared_evenly(self) -> None:
        self.assertEqual(bill.share(3000, 3), [1000, 1000, 1000])

    def test_shares_add_up_to_the_bill(self) -> None:
        self.assertEqual(sum(bill.share(1000, 3)), 1000)


class TipTest(unittest.TestCase):
    def test_ten_percent(self) -> None:
        self.assertEqual(bill.tip(4500, 10), 450)


if __name__ == "__main__":
    unittest.main()
