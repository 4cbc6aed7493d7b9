"""The same loop over HTTP with nothing but the standard library and a picture file: POST /predict, JSON both ways.

    gr00t-serve --weights synthetic --config mini --port 8000
    python http_loop.py --url http://127.0.0.1:8000 --image camera.png

Which cameras and joints the served robot has is asked from the server.
"""

import argparse
import base64
import json
import os
import pathlib
import time
import urllib.error
import urllib.request

BUSY = 429


class Server:
    def __init__(self, url):
        self.url, self.headers = url.rstrip("/"), {"content-type": "application/json"}
        if token := os.environ.get("GR00T_API_TOKEN"):
            self.headers["authorization"] = f"Bearer {token}"

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, self.headers), timeout=60) as answer:
            return json.load(answer)

    def predict(self, body, patience_s=10):
        """Asks again while the server is busy with others."""
        until = time.monotonic() + patience_s
        while True:
            try:
                return self.ask("/predict", body)
            except urllib.error.HTTPError as error:
                if error.code == BUSY and time.monotonic() < until:
                    time.sleep(float(error.headers.get("retry-after", 1)))
                    continue
                raise SystemExit(f"{error.code}: {error.read().decode()}") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--image", type=pathlib.Path, help="PNG, JPEG, WebP or BMP for every camera; the demo's by default")
    parser.add_argument("--instruction", default="pick up the pear and put it on the plate")
    parser.add_argument("--chunks", type=int, default=5, help="predictions to make")
    parser.add_argument("--execute", type=int, default=8, help="steps of each chunk that are executed")
    args = parser.parse_args()

    server = Server(args.url)
    inputs = server.ask("/info")["inputs"]
    images = server.ask("/demo")["request"]["images"]
    if args.image:
        images = dict.fromkeys(inputs["images"], base64.b64encode(args.image.read_bytes()).decode())
    state = {key: [0.0] * dim for key, dim in inputs["state"].items()}
    executed = 0
    for chunk in range(args.chunks):
        started = time.monotonic()
        reply = server.predict({"images": images, "state": state, "instruction": args.instruction, "seed": chunk})
        wall_ms = 1e3 * (time.monotonic() - started)
        timing = reply["timing_ms"]
        print(f"chunk {chunk}: {reply['action_horizon']} steps in {wall_ms:.1f} ms, {timing['device']:.1f} on the device")
        for step in range(min(args.execute, reply["action_horizon"])):
            # a robot whose joints follow at once; a real one waits here for its next cycle
            state.update({key: values[step] for key, values in reply["actions"].items() if key in state})
            executed += 1
    print(f"executed {executed} steps; state {({key: [round(x, 2) for x in row] for key, row in state.items()})}")


if __name__ == "__main__":
    main()
