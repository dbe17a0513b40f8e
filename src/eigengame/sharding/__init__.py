"""Arrays on a mesh of devices: where they are placed, and what an update exchanges."""
