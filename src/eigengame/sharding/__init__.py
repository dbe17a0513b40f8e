"""Arrays on a mesh of devices: layout, placement, cost of communication, processes."""
