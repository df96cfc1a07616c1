# judges: skytrain/observe skytrain/record
"""Chromium opens report.html at desktop and phone width: no complaint, no request to the network, nothing cut off, charts drawn.

Screenshots go to build/judges/report-*.png, for a person to look at.
"""
import judged_run
from browser import Browser

WIDTHS = {"desktop": (1280, 900, False), "phone": (390, 844, True)}
# Canvases whose pixels are not all the same: something is drawn on them.
DRAWN = """[...document.querySelectorAll('canvas')].filter(c => {
  const pixels = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
  return pixels.some(pixel => pixel !== pixels[0]);
}).length"""

if __name__ == "__main__":
    report = judged_run.folder() / "report.html"
    with Browser() as browser:
        for name, (width, height, mobile) in WIDTHS.items():
            browser.open(report, width, height, mobile)
            canvases, drawn = browser.value("document.querySelectorAll('canvas').length"), browser.value(DRAWN)
            overflow = browser.value("document.documentElement.scrollWidth - window.innerWidth")
            text = browser.value("document.body.innerText")
            browser.screenshot(judged_run.repository() / "build" / "judges" / f"report-{name}.png")
            complaints = browser.complaints()
            print(f"{name}: {canvases} charts, {drawn} drawn, {overflow} px too wide, {len(complaints)} complaints")
            assert not complaints, complaints
            assert canvases == drawn > 0, "a chart is empty"
            assert overflow <= 0, "the page is wider than the window"
            top1 = f"{judged_run.summary()['eval']['top1'] * 100:.2f}"
            assert top1.rstrip("0").rstrip(".") in text, f"the accuracy {top1} is not on the page"
