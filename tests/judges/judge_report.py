#!/usr/bin/env python3
"""A real browser opens report.html: no error, no request, no overflow, curves drawn, no foreign script run.

usage: judge_report.py REPORT.html... [--shots FOLDER]      also judges those that skytrain_observe_test writes

Looked at on a wide screen, on a phone (390 and 360 px), dark, without scripts, and printed. --shots keeps pictures.
"""
import argparse
import base64
import pathlib
import sys
import tempfile
import urllib.parse

import fixtures
from chromium import Chromium

VIEWS = [  # name, width, colour scheme
    ("wide", 1280, "light"),
    ("wide-dark", 1280, "dark"),
    ("phone", 390, "light"),
    ("phone-small", 360, "dark"),
]

# Elements that stick out of the page's right side, unless a container of theirs scrolls on its own.
OVERFLOW = """(() => {
  const width = document.documentElement.clientWidth;
  const guilty = [...document.querySelectorAll('body *')].filter((element) =>
    element.getBoundingClientRect().right > width + 1 && !element.closest('.scroll, pre, .sr'));
  return {scroll: document.documentElement.scrollWidth, width: width,
          guilty: guilty.slice(0, 3).map((element) => element.outerHTML.slice(0, 120))};
})()"""

# Charts without a curve: axes and their labels are greyish, curves are not.
BLANK_CHARTS = """[...document.querySelectorAll('canvas[data-chart]')].filter((canvas) => {
  if (!canvas.width || !canvas.height) return true;
  const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < bytes.length; i += 4) {
    const [r, g, b] = bytes.subarray(i, i + 3);
    if (bytes[i + 3] > 128 && Math.max(r, g, b) - Math.min(r, g, b) > 80) return false;
  }
  return true;
}).map((canvas) => canvas.dataset.chart)"""

ACCESSIBILITY = """(() => {
  const problems = [];
  for (const image of document.images) {
    if (!image.alt) problems.push('a picture without alternative text');
    if (!image.complete || image.naturalWidth === 0) problems.push('a picture that does not load');
  }
  for (const table of document.querySelectorAll('table')) {
    if (!table.caption || !table.querySelector('th[scope=col]')) problems.push('a table without caption or headers');
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  if (new Set(ids).size !== ids.length) problems.push('an id that is used twice');
  for (const element of document.querySelectorAll('[aria-labelledby]')) {
    for (const id of element.getAttribute('aria-labelledby').split(' ')) {
      if (!document.getElementById(id)) problems.push('aria-labelledby names nothing: ' + id);
    }
  }
  if (document.querySelectorAll('h1').length !== 1) problems.push('not exactly one h1');
  return [...new Set(problems)];
})()"""

# WCAG contrast of text against the nearest opaque background, with translucent ones laid over it.
CONTRAST = """(() => {
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const luminance = (c) => [0, 1, 2].map((i) => c[i] / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const worst = {};
  for (const element of document.querySelectorAll('main *, footer *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest('.sr, svg') || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), under = background(element);
    const ink = parse(style.color);
    const a = luminance(over([ink[0], ink[1], ink[2], ink[3] * style.opacity], under)), b = luminance(under);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = element.tagName.toLowerCase() + '.' + element.className;
    if (ratio < 4.5 && !(worst[name] <= ratio)) worst[name] = ratio;
  }
  return Object.entries(worst).map(([name, ratio]) => name + ' ' + ratio.toFixed(2));
})()"""


def console_problems(events):
    for event in events:
        method, params = event["method"], event["params"]
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            yield "exception: " + details.get("exception", {}).get("description", details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            yield "console: " + " ".join(str(argument.get("value", "")) for argument in params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            yield "log: " + params["entry"]["text"]


def request_problems(events, url):
    for event in events:
        if event["method"] == "Network.requestWillBeSent":
            requested = event["params"]["request"]["url"]
            if requested != url and not requested.startswith("data:"):
                yield "it asked for " + requested[:200]


def view(browser, url, name, width, scheme, shots):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(url)
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    yield from console_problems(browser.events)
    yield from request_problems(browser.events, url)
    overflow = browser.evaluate(OVERFLOW)
    if overflow["scroll"] > overflow["width"]:
        yield f"the page is {overflow['scroll']} px wide on {overflow['width']}: {overflow['guilty']}"
    for chart in browser.evaluate(BLANK_CHARTS):
        yield f"the chart {chart!r} shows no curve"
    yield from browser.evaluate(ACCESSIBILITY)
    for text in browser.evaluate(CONTRAST):
        yield f"contrast below 4.5: {text}"
    if browser.evaluate("'pwned' in window"):
        yield "text of a record ran as a script"
    if shots:
        picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
        (shots / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))


def without_scripts(browser, url):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(url)
        yield from console_problems(browser.events)
        root = browser.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        count = lambda selector: len(browser.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"])
        if count("#curves canvas") and not (count("#curves table") and count("noscript p")):
            yield "without scripts the curves have no table or no word of explanation"
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def printed(browser, url, shots):
    browser.call("Emulation.setEmulatedMedia", media="",
                 features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.open(url)
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
    if not pdf.startswith(b"%PDF") or len(pdf) < 10_000:
        yield "it does not print"
    yield from console_problems(browser.events)
    if shots:
        (shots / "printed.pdf").write_bytes(pdf)


def judge(browser, report, shots):
    url = "file://" + urllib.parse.quote(bytes(report.resolve()))
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    for name, width, scheme in VIEWS:
        for problem in view(browser, url, name, width, scheme, shots):
            yield f"{name}: {problem}"
    for problem in without_scripts(browser, url):
        yield f"without scripts: {problem}"
    for problem in printed(browser, url, shots):
        yield f"printed: {problem}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path, help="folder for pictures of each view")
    arguments = parser.parse_args()
    reports = list(arguments.reports)
    failed = False
    with Chromium() as browser, tempfile.TemporaryDirectory(prefix="skytrain-judge-") as folder:
        if fixtures.write("skytrain_observe_test", "ReportFixture", "SKYTRAIN_REPORT_FIXTURE", folder):
            reports += sorted(pathlib.Path(folder).glob("*/*/report.html"))
        for number, report in enumerate(reports, 1):
            shown = str(report).encode(errors="replace").decode()
            problems = list(judge(browser, report, arguments.shots / str(number) if arguments.shots else None))
            for problem in problems:
                print(f"{shown}: {problem}")
            failed |= bool(problems)
            print(f"{shown}: {'FAILED' if problems else 'ok'}: {len(VIEWS)} views, without scripts, printed")
    sys.exit(failed)


if __name__ == "__main__":
    main()
