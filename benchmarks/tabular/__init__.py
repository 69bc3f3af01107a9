"""One frozen benchmark of kernel machines, trees and networks on tables: ``python -m benchmarks.tabular --help``.

``PROTOCOL.md`` says what is run and how it is judged; it was committed before any run.
"""
