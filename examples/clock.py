"""A clock in a browser: PUB over WebSocket. python examples/clock.py [PORT OF PAGE] [PORT OF CLOCK]

Open the page in as many browsers as you like. Any SUB can subscribe, too:

    zeroxide cat sub --connect ws://127.0.0.1:5555/clock
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import zeroxide as zmq

# Browsers offer the subprotocol ZWS2.0. Each side first sends its routing id, which may be empty. Then each message
# of WebSocket is a part: a byte, which is 0 for the last part, and the body. Body 1 subscribes to everything.
PAGE = """<!doctype html>
<html lang="en">
<meta name="viewport" content="width=device-width">
<title>A clock</title>
<main><h1 id="time">waiting</h1></main>
<script>
const socket = new WebSocket("ENDPOINT", "ZWS2.0");
socket.binaryType = "arraybuffer";
socket.onopen = () => {
  socket.send(new Uint8Array([0]));
  socket.send(new Uint8Array([0, 1]));
};
let isFirst = true; // the publisher's routing id
socket.onmessage = (event) => {
  if (!isFirst) document.getElementById("time").textContent = new TextDecoder().decode(event.data.slice(1));
  isFirst = false;
};
</script>
"""


class Page(BaseHTTPRequestHandler):
    """Sends the page for every path."""

    endpoint = ""

    def do_GET(self) -> None:
        page = PAGE.replace("ENDPOINT", self.endpoint).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the requests out of the terminal."""


def main(page_port: int = 8000, clock_port: int = 5555) -> None:
    """Publishes the time twice a second."""
    with zmq.Context() as context, context.socket(zmq.PUB) as clock:
        # Port 0 stands for any free port.
        Page.endpoint = clock.bind(f"ws://127.0.0.1:{clock_port or '*'}/clock").addr
        server = ThreadingHTTPServer(("127.0.0.1", page_port), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"open http://127.0.0.1:{server.server_port}", flush=True)
        while True:
            clock.send_string(time.strftime("%H:%M:%S"))
            time.sleep(0.5)


main(*map(int, sys.argv[1:]))
