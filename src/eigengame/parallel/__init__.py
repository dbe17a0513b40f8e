"""Out of one device: meshes, what moves between their devices, hosts, and engines that are already there."""
