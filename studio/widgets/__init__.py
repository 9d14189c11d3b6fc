"""Small parts of panels and windows: each shows plain data, none knows of the engine or the flow."""
