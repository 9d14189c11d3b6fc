"""Lip-sync measured from pixels: the ruler, the set, the runs."""
