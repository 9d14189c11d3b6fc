"""Public checkpoint files: reading them, telling what they hold, and handing out their weights."""
