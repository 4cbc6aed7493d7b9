"""A stand-in for a robot, for the examples beside it: joints that follow commands at once, cameras that see grey.

Put your own behind the same three methods. Its joints are those of GR1's arms and hands, as the data config
`fourier_gr1_arms_only` reads them.
"""

import numpy as np

JOINTS = {"left_arm": 7, "right_arm": 7, "left_hand": 6, "right_hand": 6}
CAMERA = "ego_view"
SIDE_PX = 256


class Robot:
    def __init__(self):
        self.joints_rad = {key: np.zeros(dim) for key, dim in JOINTS.items()}
        self.steps = 0

    def look(self):
        """A frame of the camera, uint8 [height, width, 3], RGB."""
        return np.full((SIDE_PX, SIDE_PX, 3), 128, np.uint8)

    def joints(self):
        """Joint group to angles in rad, float64 [dim]."""
        return {key: angles.copy() for key, angles in self.joints_rad.items()}

    def execute(self, targets):
        """One control step: joint group to target angles in rad. A real robot waits here for its next cycle."""
        for key, angles in targets.items():
            self.joints_rad[key] = np.asarray(angles, np.float64)
        self.steps += 1
