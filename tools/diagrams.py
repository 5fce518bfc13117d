"""Draws the diagrams of the documentation into docs/diagrams: `python tools/diagrams.py`.

Drawings are 400 units wide, so that their text can be read on a phone. A file has its own colours for light and dark;
on the site, tools/docs_site.py inlines the drawing and docs/assets/site.css colours it.
"""

from __future__ import annotations

import sys
from html import escape
from math import hypot
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "diagrams"
WIDTH = 400

COLOURS = """
text{font:14px system-ui,"DejaVu Sans",sans-serif;fill:#26323d}.pale{font-size:12.5px;fill:#4d5560}.name{font-weight:700}
.code{font:13px ui-monospace,"DejaVu Sans Mono",monospace}.ground{fill:#fff}.box{fill:#eef2f6;stroke:#6b7280;stroke-width:1.5}
.store{fill:#fde8dc;stroke:#b23c00;stroke-width:1.5}.frame{fill:none;stroke:#6b7280;stroke-dasharray:4 4}
.flow{fill:none;stroke:#b23c00;stroke-width:2}.back{fill:none;stroke:#6b7280;stroke-width:1.5;stroke-dasharray:5 4}
.head{fill:#b23c00}.tail{fill:#6b7280}
@media(prefers-color-scheme:dark){text{fill:#e6eaee}.pale{fill:#b9c1ca}.ground{fill:#1e2129}.box{fill:#2f3b47;stroke:#8b96a2}
.store{fill:#57382a;stroke:#ff9a62}.frame,.back{stroke:#8b96a2}.flow{stroke:#ff9a62}.head{fill:#ff9a62}.tail{fill:#8b96a2}}
"""


class Drawing:
    """An SVG that grows shape by shape."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.shapes: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> None:
        style = f" class='{kind}'" if kind else ""
        self.shapes.append(
            f"<text x='{x:g}' y='{y:g}'{style} text-anchor='{anchor}'>{escape(words)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, kind: str = "box"
    ) -> None:
        """A box with its name in the first line, and a description in paler ones."""
        corner = 3 if kind == "frame" else 6
        self.shapes.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='{corner}' class='{kind}'/>"
        )
        top = y + height / 2 - (len(lines) - 1) * 8.5 + 5
        for place, line in enumerate(lines):
            self.text(x + width / 2, top + 17 * place, line, "pale" if place else "name")

    def arrow(self, *points: tuple[float, float], back: bool = False, both: bool = False) -> None:
        """A line through points with a head at its end; `back` is for the opposite direction, such
        as answers."""
        kind, head = ("back", "tail") if back else ("flow", "head")
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        self.shapes.append(f"<path d='{path}' class='{kind}'/>")
        self.head(points[-2], points[-1], head)
        if both:
            self.head(points[1], points[0], head)

    def head(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
        length = hypot(end[0] - start[0], end[1] - start[1])
        x, y = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        corners = [
            end,
            (end[0] - 10 * x + 4.5 * y, end[1] - 10 * y - 4.5 * x),
            (end[0] - 10 * x - 4.5 * y, end[1] - 10 * y + 4.5 * x),
        ]
        places = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        self.shapes.append(f"<polygon points='{places}' class='{kind}'/>")

    def svg(self) -> str:
        size = f"viewBox='0 0 {WIDTH} {self.height:g}' width='{WIDTH}' height='{self.height:g}'"
        ground = "<rect width='100%' height='100%' class='ground'/>"
        head = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>"
        return "\n".join([head, f"<style>{COLOURS}</style>", ground, *self.shapes, "</svg>", ""])


def request_reply() -> Drawing:
    drawing = Drawing(150)
    drawing.box(2, 8, 112, 54, "REQ", "client")
    drawing.box(2, 88, 112, 54, "REQ", "client")
    drawing.box(286, 40, 112, 70, "REP", "server")
    for y, end in ((26, 56), (106, 84)):
        drawing.arrow((114, y), (286, end))
        drawing.arrow((286, end + 14), (114, y + 18), back=True)
    drawing.text(200, 27, "request")
    drawing.text(200, 80, "reply", "pale")
    drawing.text(200, 142, "one at a time each", "pale")
    return drawing


def dealer_router() -> Drawing:
    drawing = Drawing(176)
    drawing.box(2, 8, 112, 54, "DEALER", "client A")
    drawing.box(2, 88, 112, 54, "DEALER", "client B")
    drawing.box(286, 40, 112, 70, "ROUTER", "server")
    drawing.arrow((114, 24), (286, 54))
    drawing.arrow((114, 32), (286, 62))
    drawing.arrow((286, 74), (114, 44), back=True)
    drawing.arrow((114, 122), (286, 92))
    drawing.arrow((286, 102), (114, 132), back=True)
    drawing.text(212, 26, "many in flight")
    drawing.text(200, 168, "The server sees", "pale", "end")
    for x, width, words in ((210, 34, "A"), (246, 112, "request")):
        drawing.box(x, 150, width, 24)
        drawing.text(x + width / 2, 167, words, "code")
    return drawing


def publish_subscribe() -> Drawing:
    drawing = Drawing(206)
    drawing.box(2, 70, 112, 66, "PUB", "publisher")
    for y, topic, gets in ((6, "“EWR”", True), (76, "all", True), (146, "“JFK”", False)):
        drawing.box(254, y, 144, 54, "SUB", f"subscribed to {topic}")
        if gets:
            drawing.arrow((114, 84 + y / 4), (254, y + 27))
        else:
            drawing.arrow((254, y + 27), (114, 84 + y / 4), back=True)
    drawing.text(152, 54, "EWR 12:05", "code")
    drawing.text(172, 172, "only the", "pale")
    drawing.text(172, 188, "subscription", "pale")
    return drawing


def xpub_xsub() -> Drawing:
    drawing = Drawing(310)
    for x in (56, 232):
        drawing.box(x, 4, 112, 50, "PUB", "publisher")
        drawing.arrow((x + 44, 54), (x + 44 + (200 - x - 56) / 3, 112))
        drawing.arrow((x + 68 + (200 - x - 56) / 3, 112), (x + 68, 54), back=True)
    drawing.box(40, 112, 320, 84, kind="store")
    drawing.text(200, 132, "XSUB", "name")
    drawing.text(200, 159, "proxy: messages down, subscriptions up", "pale")
    drawing.text(200, 186, "XPUB", "name")
    for x, start in ((2, 120), (144, 200), (286, 280)):
        drawing.box(x, 254, 112, 50, "SUB", "subscriber")
        drawing.arrow((start - 10, 196), (x + 46, 254))
        drawing.arrow((x + 68, 254), (start + 12, 196), back=True)
    return drawing


def push_pull() -> Drawing:
    drawing = Drawing(206)
    drawing.box(2, 70, 112, 66, "PUSH", "hands it out")
    for y, numbers in ((6, "1  4"), (76, "2  5"), (146, "3  6")):
        drawing.box(286, y, 112, 54, "PULL", "worker")
        drawing.arrow((114, 84 + y / 4), (286, y + 27))
        middle = (84 + y / 4 + y + 27) / 2
        drawing.text(206, middle - 9, numbers, "code")
    return drawing


def client_server() -> Drawing:
    drawing = Drawing(176)
    drawing.box(2, 8, 112, 54, "CLIENT", "client 7")
    drawing.box(2, 88, 112, 54, "CLIENT", "client 8")
    drawing.box(286, 40, 112, 70, "SERVER", "server")
    drawing.arrow((114, 28), (286, 58))
    drawing.arrow((286, 70), (114, 40), back=True)
    drawing.arrow((114, 122), (286, 92))
    drawing.arrow((286, 102), (114, 132), back=True)
    drawing.text(212, 26, "many in flight")
    drawing.text(200, 168, "The server sees", "pale", "end")
    drawing.box(210, 150, 148, 24)
    drawing.text(284, 167, "request, from 7", "code")
    return drawing


def dgram() -> Drawing:
    drawing = Drawing(176)
    drawing.box(2, 8, 112, 70, "DGRAM", "bound")
    drawing.box(286, 8, 112, 70, "any program", "192.0.2.1:5555")
    drawing.arrow((114, 34), (286, 34))
    drawing.arrow((286, 54), (114, 54), back=True)
    drawing.text(200, 25, "a datagram")
    drawing.text(200, 72, "an answer", "pale")
    for y, words in ((110, "the application sends"), (144, "the application receives")):
        drawing.text(146, y + 17, words, "pale", "end")
        drawing.box(154, y, 158, 24)
        drawing.text(233, y + 17, "192.0.2.1:5555", "code")
        drawing.box(316, y, 82, 24)
        drawing.text(357, y + 17, "body", "code")
    return drawing


def radio_dish() -> Drawing:
    drawing = Drawing(206)
    drawing.box(2, 70, 112, 66, "RADIO", "sends")
    for y, group, gets in (
        (6, "“ulm”", True),
        (76, "“ulm” and “bonn”", True),
        (146, "“bonn”", False),
    ):
        drawing.box(244, y, 154, 54, "DISH", f"in {group}")
        if gets:
            drawing.arrow((114, 84 + y / 4), (244, y + 27))
        else:
            drawing.arrow((244, y + 27), (114, 84 + y / 4), back=True)
    drawing.text(148, 54, "to “ulm”", "code")
    drawing.text(168, 172, "only the", "pale")
    drawing.text(168, 188, "membership", "pale")
    return drawing


def scatter_gather() -> Drawing:
    drawing = Drawing(136)
    for y in (6, 76):
        drawing.box(2, y, 112, 54, "SCATTER", "source")
        for to in (6, 76):
            drawing.arrow((114, y + 27), (286, to + 27))
    for y in (6, 76):
        drawing.box(286, y, 112, 54, "GATHER", "worker")
    drawing.text(200, 20, "one part each")
    return drawing


def survey() -> Drawing:
    drawing = Drawing(206)
    drawing.box(2, 70, 112, 66, "SURVEYOR", "asks", "until a deadline")
    for y, words in ((6, "answers"), (76, "answers"), (146, "answers too late")):
        drawing.box(268, y, 130, 54, "RESPONDENT", words)
        drawing.arrow((114, 82 + y / 4), (268, y + 20))
        if words == "answers":
            drawing.arrow((268, y + 36), (114, 96 + y / 4), back=True)
    drawing.arrow((268, 184), (196, 158), back=True)
    drawing.text(188, 174, "dropped", "pale", "end")
    drawing.text(180, 30, "the survey")
    return drawing


def bus() -> Drawing:
    drawing = Drawing(176)
    drawing.box(144, 4, 112, 54, "BUS", "sends")
    for x in (2, 286):
        drawing.box(x, 114, 112, 54, "BUS", "receives")
    drawing.arrow((160, 58), (84, 114))
    drawing.arrow((240, 58), (316, 114))
    drawing.arrow((114, 141), (286, 141), back=True, both=True)
    drawing.text(200, 132, "connected", "pale")
    drawing.text(200, 164, "passes nothing on", "pale")
    return drawing


def pair() -> Drawing:
    drawing = Drawing(74)
    drawing.box(2, 8, 112, 58, "PAIR", "one thread")
    drawing.box(286, 8, 112, 58, "PAIR", "another")
    drawing.arrow((114, 37), (286, 37), both=True)
    drawing.text(200, 27, "exactly one peer")
    return drawing


def stream() -> Drawing:
    drawing = Drawing(118)
    drawing.box(2, 8, 112, 58, "STREAM")
    drawing.box(286, 8, 112, 58, "TCP", "any program")
    drawing.arrow((114, 30), (286, 30))
    drawing.arrow((286, 46), (114, 46), back=True)
    drawing.text(200, 22, "plain bytes, no ZMTP", "pale")
    drawing.text(2, 104, "The program sees", "pale", "start")
    for x, width, words in ((120, 104, "connection"), (226, 104, "bytes")):
        drawing.box(x, 86, width, 26)
        drawing.text(x + width / 2, 104, words, "code")
    return drawing


def journey() -> Drawing:
    """Draws the way down on the sender's side and up on the receiver's."""
    drawing = Drawing(392)
    for x, title in ((2, "sending process"), (208, "receiving process")):
        drawing.box(x, 22, 190, 292, kind="frame")
        drawing.text(x + 95, 15, title, "pale")
    drawing.box(14, 34, 166, 50, "send()", "your thread")
    drawing.box(14, 120, 166, 60, "queue", "SNDHWM, per peer", kind="store")
    drawing.box(14, 216, 166, 86, "I/O thread", "encodes, encrypts,", "one write for many")
    drawing.box(220, 216, 166, 86, "I/O thread", "one read for many,", "decrypts, decodes")
    drawing.box(220, 120, 166, 60, "queue", "RCVHWM, per peer", kind="store")
    drawing.box(220, 34, 166, 50, "recv()", "your thread")
    drawing.box(90, 350, 220, 38, "kernel: tcp or ipc")
    for start, end in ((84, 120), (180, 216)):
        drawing.arrow((97, start), (97, end))
        drawing.arrow((303, end), (303, start))
    drawing.arrow((120, 302), (120, 350))
    drawing.arrow((280, 350), (280, 302))
    drawing.text(200, 340, "ZMTP", "pale")
    return drawing


def pipeline() -> Drawing:
    drawing = Drawing(432)
    drawing.box(2, 4, 124, 56, "Producer", "keeps, resends")
    drawing.box(138, 4, 124, 56, "any ZeroMQ", "PUSH, PUB, …")
    drawing.box(274, 4, 124, 56, "HTTP", "curl")
    drawing.arrow((54, 60), (54, 122))
    drawing.arrow((84, 122), (84, 60), back=True)
    drawing.text(92, 84, "acknowledged", "pale", "start")
    drawing.text(92, 100, "once on disk", "pale", "start")
    drawing.arrow((214, 60), (214, 122))
    drawing.arrow((336, 60), (336, 122))
    drawing.box(2, 122, 396, 96, kind="box")
    drawing.text(200, 144, "collector", "name")
    drawing.box(16, 156, 368, 48, "log on disk", "Arrow segments, checksums, offsets", kind="store")
    for x, name, does in (
        (2, "Client", "follow(topic)"),
        (138, "Spark", "exactly once"),
        (274, "pyarrow", "reads the files"),
    ):
        drawing.arrow((x + 62, 218), (x + 62, 268))
        drawing.box(x, 268, 124, 56, name, does)
    drawing.text(212, 248, "ranges of offsets", "pale", "start")
    drawing.arrow((200, 324), (200, 372))
    drawing.text(212, 352, "each batch published once", "pale", "start")
    drawing.box(
        76, 372, 248, 52, "another log, or sockets", "services and views read on", kind="box"
    )
    return drawing


DRAWINGS = {
    "request-reply": request_reply,
    "dealer-router": dealer_router,
    "publish-subscribe": publish_subscribe,
    "xpub-xsub": xpub_xsub,
    "push-pull": push_pull,
    "client-server": client_server,
    "dgram": dgram,
    "radio-dish": radio_dish,
    "scatter-gather": scatter_gather,
    "survey": survey,
    "bus": bus,
    "pair": pair,
    "stream": stream,
    "journey": journey,
    "pipeline": pipeline,
}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg())
    return 0


if __name__ == "__main__":
    sys.exit(main())
