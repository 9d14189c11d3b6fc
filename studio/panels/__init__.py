"""The docks of the studio, one file each; `window.py` lists them."""
