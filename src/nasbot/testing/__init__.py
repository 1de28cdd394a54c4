"""For tests, ours and yours: random valid networks, hypothesis strategies, and the distance as a linear program.

networks     random networks of any vocabulary from a numpy generator
strategies   the same as hypothesis strategies (the only module that needs hypothesis)
reference    OTMANN written plainly from the paper and solved by HiGHS, to hold fast code against
searcher_conformance, storage_conformance, executor_conformance, pacer_conformance
             the promises of each seam as test classes to inherit (they need no pytest)

Nothing else in the package imports this one.
"""
