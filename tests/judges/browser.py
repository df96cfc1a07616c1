"""Chromium without a window, driven through its DevTools protocol over a pipe: no port, no driver, no library."""
import base64
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any


class Browser:
    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="skytrain-chromium-", ignore_cleanup_errors=True)
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def as_3_and_4() -> None:
            # Above 4 first, so that neither copy overwrites the other's source.
            one, two = os.dup(to_read), os.dup(from_write)
            spare = [os.dup(one), os.dup(two)]
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"],
            close_fds=False, preexec_fn=as_3_and_4, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number, self.session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.to_write)
        os.close(self.from_read)
        self.profile.cleanup()

    def message(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            more = os.read(self.from_read, 1 << 16)
            assert more, "chromium ended"
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        request: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to_write, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def open(self, page: pathlib.Path, width: int, height: int, mobile: bool) -> None:
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1,
                  mobile=mobile)
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())
        # Charts are drawn in animation frames: two of them later, the page is what people see.
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def value(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def complaints(self) -> list[str]:
        """Console errors and warnings, exceptions, and requests to anywhere but the page itself."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(f"exception: {parameters['exceptionDetails']}")
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(f"console: {parameters['args']}")
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {parameters['entry']['text']}")
            elif method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file://", "data:", "about:")):
                    found.append(f"asks the network for {url}")
        return found

    def screenshot(self, path: pathlib.Path, whole: bool = True) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
