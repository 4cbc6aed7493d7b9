"""Speaks each protocol to a running server as the stock clients do, and compares the actions bit for bit.

Run by the Rust test `stock_python_clients_get_the_actions_of_the_rust_api`; by hand against any server whose robot is GR1
arms only:

    python wire_clients.py --zmq-port 5555 --websocket-port 8000 --http-url http://127.0.0.1:20000

Without --case it asks that all protocols given agree with each other.
"""

import argparse
import asyncio
import io
import json
import urllib.request

import json_numpy
import msgpack
import numpy as np
import requests
import websockets
import zmq

HOST = "127.0.0.1"
TIMEOUT_S = 60
SEED_KEY = "gr00t_tt.seed"
JOINTS = {"left_arm": 7, "right_arm": 7, "left_hand": 6, "right_hand": 6}


def observation(instruction, seed, dtype=np.float64):
    """What the Rust side calls `rig::observation`."""
    image = (np.arange(256 * 256 * 3) % 251).astype(np.uint8).reshape(1, 256, 256, 3)
    obs = {"video.ego_view": image, "annotation.human.action.task_description": [instruction], SEED_KEY: seed}
    for key, dim in JOINTS.items():
        obs[f"state.{key}"] = (0.125 * np.arange(dim) - 0.25).astype(dtype)[None]
    return obs


# ---- ZeroMQ, after gr00t/eval/service.py ----


def npy_hook(value):
    if isinstance(value, np.ndarray):
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {"__ndarray_class__": True, "as_npy": file.getvalue()}
    raise TypeError(type(value))


def npy_unhook(value):
    if "__ndarray_class__" in value:
        return np.load(io.BytesIO(value["as_npy"]), allow_pickle=False)
    return value


class ZmqClient:
    def __init__(self, port):
        self.socket = zmq.Context.instance().socket(zmq.REQ)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_S * 1000)
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, 200)
        self.socket.connect(f"tcp://{HOST}:{port}")

    def raw(self, body):
        self.socket.send(body)
        return self.socket.recv()

    def call(self, endpoint, **fields):
        reply = self.raw(msgpack.packb({"endpoint": endpoint, **fields}, default=npy_hook))
        return msgpack.unpackb(reply, object_hook=npy_unhook)


def check_zmq(port, instruction, seed):
    client = ZmqClient(port)
    assert client.call("ping") == {"status": "ok", "message": "Server is running"}
    config = client.call("get_modality_config")
    assert json.loads(config["video"]["as_json"]) == {"delta_indices": [0], "modality_keys": ["video.ego_view"]}
    actions = client.call("get_action", data=observation(instruction, seed))
    assert "error" not in actions, actions

    fortran = observation(instruction, seed)
    fortran["video.ego_view"] = np.asfortranarray(fortran["video.ego_view"])
    fortran["annotation.human.action.task_description"] = np.array([instruction])
    for key in JOINTS:
        fortran[f"state.{key}"] = fortran[f"state.{key}"].astype(">f8")
    same(client.call("get_action", data=fortran), actions)

    batch = {key: np.stack([value, value]) for key, value in observation(instruction, seed).items() if key[0] in "vs"}
    batch["annotation.human.action.task_description"] = [instruction] * 2
    batch[SEED_KEY] = seed
    batched = client.call("get_action", data=batch)
    for key, value in actions.items():
        assert batched[key].shape == (2, *value.shape)
        assert batched[key][1].tobytes() == value.tobytes(), key

    nested = {
        "video": {"ego_view": observation(instruction, seed)["video.ego_view"][None]},
        "state": {key: observation(instruction, seed)[f"state.{key}"][None] for key in JOINTS},
        "language": {"task": [[instruction]]},
        SEED_KEY: seed,
    }
    n16, info = client.call("get_action", data={"observation": nested, "options": None})
    assert isinstance(info, dict)
    for key in JOINTS:
        assert n16[key][0].tobytes() == actions[f"action.{key}"].tobytes(), key
    assert client.call("reset", data={"options": None}) == {}

    assert "error" in client.call("get_action", data={})
    assert "error" in msgpack.unpackb(client.raw(b"\xc1"))
    assert client.raw(b"PK\x03\x04") == b"ERROR"
    assert client.raw(b"\x80\x02}.") == b"ERROR"
    unseeded = observation(instruction, seed)
    del unseeded[SEED_KEY]
    first, second = (client.call("get_action", data=unseeded) for _ in range(2))
    assert any(first[key].tobytes() != second[key].tobytes() for key in first)

    # a client that goes away between send and receive leaves the next one alone
    gone = ZmqClient(port)
    gone.socket.send(msgpack.packb({"endpoint": "get_action", "data": unseeded}, default=npy_hook))
    gone.socket.close()
    assert ZmqClient(port).call("ping")["status"] == "ok"
    return actions


# ---- WebSocket, after openpi_client ----


def openpi_hook(value):
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(type(value))


def openpi_unhook(value):
    if b"__ndarray__" in value:
        return np.ndarray(buffer=value[b"data"], dtype=np.dtype(value[b"dtype"]), shape=value[b"shape"])
    return value


async def check_websocket(port, instruction, seed):
    url = f"ws://{HOST}:{port}"
    async with websockets.connect(url, compression=None, max_size=None, open_timeout=TIMEOUT_S) as socket:
        metadata = msgpack.unpackb(await socket.recv())
        assert metadata["action_horizon"] == 16, metadata
        await socket.send(msgpack.packb(observation(instruction, np.int64(seed)), default=openpi_hook))
        reply = msgpack.unpackb(await asyncio.wait_for(socket.recv(), TIMEOUT_S), object_hook=openpi_unhook)
        await (await socket.ping())
    joined = np.concatenate([reply[f"action.{key}"] for key in JOINTS], axis=1)
    assert reply["actions"].shape == (16, 26) and reply["actions"].tobytes() == joined.tobytes()
    assert reply["server_timing"]["infer_ms"] > 0

    async with websockets.connect(url, compression=None) as socket:
        await socket.recv()
        await socket.send(b"\xc1")
        assert isinstance(await socket.recv(), str)
        try:
            await socket.recv()
            raise AssertionError("the connection is still open")
        except websockets.ConnectionClosed as closed:
            assert closed.rcvd.code == 1011
    return {key: value for key, value in reply.items() if key.startswith("action.")}


def healthz(port):
    with urllib.request.urlopen(f"http://{HOST}:{port}/healthz", timeout=TIMEOUT_S) as answer:
        assert answer.read() == b"OK\n"


# ---- HTTP, after getting_started's http client ----


def check_http(url, instruction, seed):
    # what the stock client does first: `json` itself writes and reads arrays from here on
    json_numpy.patch()

    def act(payload):
        answer = requests.post(f"{url}/act", json=payload, timeout=TIMEOUT_S)
        if answer.status_code != 200:
            raise requests.HTTPError(answer.text)
        return answer.json()

    actions = act({"observation": observation(instruction, seed)})
    encoded = act({"encoded": json_numpy.dumps({"observation": observation(instruction, seed)})})
    same(encoded, actions)
    try:
        act({"observation": {}})
        raise AssertionError("an empty observation was taken")
    except requests.HTTPError as error:
        assert "missing" in str(error), error
    batch = {key: np.stack([value, value]) for key, value in observation(instruction, seed).items() if key[0] in "vs"}
    batch["annotation.human.action.task_description"] = [instruction] * 2
    batch[SEED_KEY] = seed
    for key, value in act({"observation": batch}).items():
        assert value.shape == (2, *actions[key].shape) and value[1].tobytes() == actions[key].tobytes(), key
    return actions


def same(got, wanted):
    assert list(got) == list(wanted), (list(got), list(wanted))
    for key, value in wanted.items():
        assert got[key].dtype == np.float32 and got[key].shape == value.shape, (key, got[key].dtype, got[key].shape)
        assert got[key].tobytes() == value.tobytes(), f"{key} differs"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zmq-port", type=int)
    parser.add_argument("--websocket-port", type=int)
    parser.add_argument("--http-url")
    parser.add_argument("--case", type=json.loads, default={"seed": 7, "instruction": "pick the pear"})
    args = parser.parse_args()
    case = (args.case["instruction"], args.case["seed"])
    wanted = None
    if "groups" in args.case:
        wanted = {
            f"action.{group['key']}": np.array(group["bits"], np.uint32)
            .view(np.float32)
            .reshape(args.case["horizon"], group["dim"])
            for group in args.case["groups"]
        }

    def compare(name, actions):
        nonlocal wanted
        wanted = actions if wanted is None else wanted
        same(actions, wanted)
        print(f"{name} ok")

    if args.zmq_port:
        compare("zmq", check_zmq(args.zmq_port, *case))
    if args.websocket_port:
        healthz(args.websocket_port)
        compare("websocket", asyncio.run(check_websocket(args.websocket_port, *case)))
    if args.http_url:
        compare("http", check_http(args.http_url.rstrip("/"), *case))


if __name__ == "__main__":
    main()
