"""The same loop over openpi's WebSocket protocol: one connection, msgpack with raw arrays, the keys that openpi's clients send.

    gr00t-serve --weights synthetic --config mini --websocket-port 8001
    pip install websockets msgpack numpy
    python openpi_loop.py --port 8001

openpi's own `openpi_client.websocket_client_policy.WebsocketClientPolicy` speaks the same and works as well.
"""

import msgpack
import numpy as np
from websockets.sync.client import connect

from robot import JOINTS, arguments, control


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
    args = arguments(__doc__, port=8000)
    policy = PolicyClient(args.host, args.port, args.token)
    ends = np.cumsum(list(JOINTS.values()))[:-1]

    def predict(robot):
        observation = {
            "observation/image": robot.look(),
            "observation/state": np.concatenate(list(robot.joints().values())),
            "prompt": args.instruction,
        }
        # all joints side by side, [horizon, joints]
        actions = policy.infer(observation)["actions"]
        return [dict(zip(JOINTS, np.split(targets, ends))) for targets in actions]

    control(args, predict)


if __name__ == "__main__":
    main()
