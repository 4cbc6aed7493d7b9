"""What the examples beside it share: their flags, the control loop, and a stand-in for a robot, whose joints follow commands at
once and whose camera sees grey.

Put your own robot behind the same three methods. Its joints are those of GR1's arms and hands, as the data config
`fourier_gr1_arms_only` reads them.
"""

import argparse
import time

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


def arguments(description, port):
    """The command line of a loop whose server listens on `port` by default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=port)
    parser.add_argument("--token")
    parser.add_argument("--instruction", default="pick up the pear and put it on the plate")
    parser.add_argument("--chunks", type=int, default=5, help="predictions to make")
    parser.add_argument("--execute", type=int, default=8, help="steps of each chunk that are executed")
    return parser.parse_args()


def control(args, predict):
    """A receding-horizon loop: `predict` gives a list of joint targets for what the robot sees, the first few are executed."""
    robot = Robot()
    for chunk in range(args.chunks):
        started = time.monotonic()
        steps = predict(robot)
        print(f"chunk {chunk}: {len(steps)} steps in {1e3 * (time.monotonic() - started):.1f} ms")
        for targets in steps[: args.execute]:
            robot.execute(targets)
    print(f"executed {robot.steps} steps; left arm at {np.round(robot.joints()['left_arm'], 2)} rad")
