"""Seeing, reading and hearing.

Importing this package, or any module in it, loads no model runtime; building an encoder does.
"""
