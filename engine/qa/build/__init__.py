"""Builds the QA set from packages: needs Debian and PyPI packages, never used at run time."""
