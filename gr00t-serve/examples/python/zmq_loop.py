"""A receding-horizon loop over NVIDIA's ZeroMQ protocol: predict 16 steps, execute the first few, look again.

    gr00t-serve --weights synthetic --config mini --zmq-port 5555
    pip install pyzmq msgpack numpy
    python zmq_loop.py --port 5555

The bytes are those of `RobotInferenceClient` in NVIDIA's Isaac-GR00T (gr00t/eval/service.py, N1.5), which works as well.
"""

import argparse
import io
import time

import msgpack
import numpy as np
import zmq

from robot import CAMERA, Robot


def pack(value):
    """An array as a whole .npy file."""
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": file.getvalue()}


def unpack(fields):
    if "__ndarray_class__" in fields:
        return np.load(io.BytesIO(fields["as_npy"]), allow_pickle=False)
    return fields


class PolicyClient:
    def __init__(self, host, port, token=None, timeout_s=30):
        self.address, self.token, self.timeout_ms = f"tcp://{host}:{port}", token, int(1000 * timeout_s)
        self.socket = None

    def call(self, endpoint, data=None):
        if self.socket is None:
            self.socket = zmq.Context.instance().socket(zmq.REQ)
            self.socket.setsockopt(zmq.LINGER, 0)
            self.socket.setsockopt(zmq.RCVTIMEO, self.timeout_ms)
            self.socket.connect(self.address)
        request = {"endpoint": endpoint}
        if data is not None:
            request["data"] = data
        if self.token:
            request["api_token"] = self.token
        try:
            self.socket.send(msgpack.packb(request, default=pack))
            reply = msgpack.unpackb(self.socket.recv(), object_hook=unpack)
        except zmq.Again:
            # a REQ socket that waits for an answer takes no other request
            self.socket.close()
            self.socket = None
            raise TimeoutError(f"no answer from {self.address} within {self.timeout_ms} ms") from None
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def get_action(self, observation):
        return self.call("get_action", observation)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5555)
    parser.add_argument("--token")
    parser.add_argument("--instruction", default="pick up the pear and put it on the plate")
    parser.add_argument("--chunks", type=int, default=5, help="predictions to make")
    parser.add_argument("--execute", type=int, default=8, help="steps of each chunk that are executed")
    args = parser.parse_args()

    policy, robot = PolicyClient(args.host, args.port, args.token), Robot()
    policy.call("ping")
    for chunk in range(args.chunks):
        # one time step: every array has a leading dimension of 1
        observation = {f"video.{CAMERA}": robot.look()[None]}
        observation |= {f"state.{key}": angles[None] for key, angles in robot.joints().items()}
        observation["annotation.human.action.task_description"] = [args.instruction]
        started = time.monotonic()
        actions = policy.get_action(observation)
        horizon = len(next(iter(actions.values())))
        print(f"chunk {chunk}: {horizon} steps in {1e3 * (time.monotonic() - started):.1f} ms")
        for step in range(min(args.execute, horizon)):
            robot.execute({key.removeprefix("action."): values[step] for key, values in actions.items()})
    print(f"executed {robot.steps} steps; left arm at {np.round(robot.joints()['left_arm'], 2)} rad")


if __name__ == "__main__":
    main()
