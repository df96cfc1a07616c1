"""Headless Chromium over its debugging pipe (--remote-debugging-pipe): the DevTools protocol without a port and without
a WebSocket library."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """One browser with one page. `events` holds what the page reported since clear_events()."""

    def __init__(self, timeout=60):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            raise SystemExit("chromium was not found: apt-get install chromium")
        self.timeout = timeout
        self.events = []
        self._buffer = b""
        self._next_id = 0
        self._profile = tempfile.TemporaryDirectory(prefix="skytrain-judge-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        # The browser reads commands on descriptor 3 and answers on 4. The two ends are first moved out of their way.
        def use_pipes():
            read_end, write_end = os.dup2(to_browser, 10), os.dup2(from_browser, 11)
            os.dup2(read_end, 3)
            os.dup2(write_end, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", f"--user-data-dir={self._profile.name}",
             "about:blank"],
            preexec_fn=use_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        target = next(t for t in self._call_root("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._call_root("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self._call_root("Browser.close")
            self._process.wait(10)
        except (TimeoutError, OSError, EOFError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **params):
        return self._call(method, params, self._session)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def clear_events(self):
        self.events.clear()

    def open(self, url):
        """Loads a page and waits for its load event."""
        self.clear_events()
        self.call("Page.navigate", url=url)
        self._receive_until(lambda message: message.get("method") == "Page.loadEventFired")

    def _call_root(self, method, **params):
        return self._call(method, params, None)

    def _call(self, method, params, session):
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._receive_until(lambda received: received.get("id") == message["id"])
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive_until(self, is_it):
        deadline = time.monotonic() + self.timeout
        while True:
            while b"\0" in self._buffer:
                text, self._buffer = self._buffer.split(b"\0", 1)
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if is_it(message):
                    return message
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer")
            received = os.read(self._read, 1 << 20)
            if not received:
                raise EOFError("Chromium ended")
            self._buffer += received
