"""The parts of the KITTI format."""
