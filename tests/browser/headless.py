"""A headless Chromium, driven over the W3C WebDriver protocol: JSON over HTTP."""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"

# There is no sandbox for root, and containers have a small /dev/shm.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--window-size=1100,900",
)

PATIENCE = 120  # axe needs many seconds for a large page on a busy machine

# A laptop and a phone.
SIZES = ((1280, 900), (375, 812))


def missing() -> str | None:
    """The missing programs, if any."""
    if not any(map(shutil.which, CHROMIUM)) or not shutil.which(DRIVER):
        return "the browser test needs Chromium: apt install chromium chromium-driver"
    return None


class Browser:
    """One window. `arguments` are further ones of Chromium's command line."""

    def __init__(self, *arguments: str) -> None:
        self.driver = subprocess.Popen(
            [str(shutil.which(DRIVER)), "--port=0"], stdout=subprocess.PIPE, text=True
        )
        try:
            self.root = f"http://127.0.0.1:{self._port()}/session"
            binary = next(path for path in map(shutil.which, CHROMIUM) if path)
            chrome = {"binary": binary, "args": [*ARGUMENTS, *arguments]}
            wanted = {"goog:chromeOptions": chrome, "timeouts": {"script": 1000 * PATIENCE}}
            capabilities = {"alwaysMatch": wanted}
            created = self._ask("POST", "", {"capabilities": capabilities})
            self.root += "/" + created["sessionId"]
        except BaseException:
            self.driver.kill()
            raise

    def open(self, url: str) -> None:
        """Opens a page."""
        self._ask("POST", "/url", {"url": url})

    def run(self, script: str) -> Any:
        """Runs JavaScript and returns its result."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def text(self, selector: str) -> str:
        """The text of an element."""
        return self.run(f"return document.querySelector({json.dumps(selector)}).textContent")

    def until(self, script: str, reached: Callable[[Any], bool], timeout: float = 60.0) -> Any:
        """Runs a script until its result is the expected one."""
        deadline = time.monotonic() + timeout
        while not reached(value := self.run(script)):
            assert time.monotonic() < deadline, f"{script}: still {value!r}"
            time.sleep(0.02)
        return value

    def until_equal(self, script: str, expected: object, timeout: float = 60.0) -> None:
        """Runs a script until its result is this one."""
        # A method such as `(1).__eq__` would be true of None: it returns NotImplemented.
        self.until(script, lambda value: value == expected, timeout)

    def looks(self) -> Iterator[str]:
        """Turns the window into a wide and a narrow one, light and dark, and names each."""
        for width, height in SIZES:
            for scheme in ("light", "dark"):
                size = {"width": width, "height": height, "deviceScaleFactor": 1}
                size["mobile"] = width < 500
                self._command("Emulation.setDeviceMetricsOverride", size)
                preferred = [{"name": "prefers-color-scheme", "value": scheme}]
                self._command("Emulation.setEmulatedMedia", {"features": preferred})
                yield f"{width}-{scheme}"

    def faults(self) -> list[str]:
        """What stops people from reading the page: axe's findings, and text beyond the window's edge."""
        axe = (files("axe_core_python") / "axe.min.js").read_text()
        ask = "axe.run().then(arguments[0], error => arguments[0]({error: String(error)}))"
        body = {"script": axe + "\n" + ask, "args": []}
        found = self._ask("POST", "/execute/async", body)
        assert found.get("passes"), found
        faults = [
            f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]
        shown, there = self.run("return [innerWidth, document.documentElement.scrollWidth]")
        return faults + [f"{there} pixels wide in a window of {shown}"] * (there > shown)

    def screenshot(self, path: Path) -> None:
        """The window as a PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def close(self) -> None:
        """Ends the browser and its driver."""
        try:
            self._ask("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()
            self.driver.stdout.close()

    def _command(self, name: str, arguments: dict[str, Any]) -> None:
        """Sends a command of Chromium's own protocol."""
        self._ask("POST", "/goog/cdp/execute", {"cmd": name, "params": arguments})

    def _port(self) -> int:
        # It prints "ChromeDriver was started successfully on port 41234."
        for line in self.driver.stdout:
            if "started successfully" in line:
                return int(line.strip(" .\n").split()[-1])
        raise RuntimeError("chromedriver did not start")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            self.root + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE + 30) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error
