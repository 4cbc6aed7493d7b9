"""A receding-horizon loop over NVIDIA's ZeroMQ protocol: predict 16 steps, execute the first few, look again.

    gr00t-serve --weights synthetic --config mini --zmq-port 5555
    pip install pyzmq msgpack numpy
    python zmq_loop.py --port 5555

The bytes are those of `RobotInferenceClient` in NVIDIA's Isaac-GR00T (gr00t/eval/service.py, N1.5), which works as well.
"""

import io

import msgpack
import numpy as np
import zmq

from robot import CAMERA, arguments, control


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
    args = arguments(__doc__, port=5555)
    policy = PolicyClient(args.host, args.port, args.token)
    policy.call("ping")

    def predict(robot):
        # one time step: every array has a leading dimension of 1
        observation = {f"video.{CAMERA}": robot.look()[None]}
        observation |= {f"state.{key}": angles[None] for key, angles in robot.joints().items()}
        observation["annotation.human.action.task_description"] = [args.instruction]
        actions = policy.get_action(observation)
        horizon = len(next(iter(actions.values())))
        return [{key.removeprefix("action."): values[step] for key, values in actions.items()} for step in range(horizon)]

    control(args, predict)


if __name__ == "__main__":
    main()
