"""The same loop over openpi's WebSocket protocol: one connection, msgpack with raw arrays, the keys that openpi's clients send.

    gr00t-serve --weights synthetic --config mini --websocket-port 8001
    pip install websockets msgpack numpy
    python openpi_loop.py --port 8001

openpi's own `openpi_client.websocket_client_policy.WebsocketClientPolicy` speaks the same and works as well.
"""

import argparse
import time

import msgpack
import numpy as np
from websockets.sync.client import connect

from robot import JOINTS, Robot


def pack(value):
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    raise TypeError(f"{type(value)} has no form in msgpack")


def unpack(fields):
    if b"__ndarray__" in fields:
        return np.ndarray(buffer=fields[b"data"], dtype=np.dtype(fields[b"dtype"]), shape=fields[b"shape"])
    return fields


class PolicyClient:
    def __init__(self, host, port, token=None):
        headers = {"Authorization": f"Api-Key {token}"} if token else None
        # frames are large and hardly shrink
        self.socket = connect(f"ws://{host}:{port}", compression=None, max_size=None, additional_headers=headers)
        self.metadata = msgpack.unpackb(self.socket.recv(), object_hook=unpack)

    def infer(self, observation):
        self.socket.send(msgpack.packb(observation, default=pack))
        reply = self.socket.recv()
        if isinstance(reply, str):
            raise RuntimeError(reply)
        return msgpack.unpackb(reply, object_hook=unpack)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--token")
    parser.add_argument("--instruction", default="pick up the pear and put it on the plate")
    parser.add_argument("--chunks", type=int, default=5, help="predictions to make")
    parser.add_argument("--execute", type=int, default=8, help="steps of each chunk that are executed")
    args = parser.parse_args()

    policy, robot = PolicyClient(args.host, args.port, args.token), Robot()
    ends = np.cumsum(list(JOINTS.values()))[:-1]
    for chunk in range(args.chunks):
        observation = {
            "observation/image": robot.look(),
            "observation/state": np.concatenate(list(robot.joints().values())),
            "prompt": args.instruction,
        }
        started = time.monotonic()
        # all joints side by side, [horizon, joints]
        actions = policy.infer(observation)["actions"]
        print(f"chunk {chunk}: {len(actions)} steps in {1e3 * (time.monotonic() - started):.1f} ms")
        for targets in actions[: args.execute]:
            robot.execute(dict(zip(JOINTS, np.split(targets, ends))))
    print(f"executed {robot.steps} steps; left arm at {np.round(robot.joints()['left_arm'], 2)} rad")


if __name__ == "__main__":
    main()
