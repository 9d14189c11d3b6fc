"""Small parts of panels and windows: each shows plain data, none knows of engine or flow."""
