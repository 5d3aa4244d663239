"""Tests of the laws which the book and the package keep."""
