"""For tests, ours and yours: random valid networks, hypothesis strategies, and the distance as a linear program.

networks     random networks of any vocabulary from a numpy generator
strategies   the same as hypothesis strategies (the only module that needs hypothesis)
reference    OTMANN written plainly from the paper and solved by HiGHS, to hold fast code against

Nothing else in the package imports this one.
"""
