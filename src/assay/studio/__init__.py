"""The studio: the main job in a browser, on this machine. `assay studio` starts it; it needs the extra `studio`."""
