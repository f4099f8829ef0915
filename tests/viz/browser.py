"""A headless Chromium for tests of pages; tests are skipped, with the reason, where there is none."""

import shutil
import time

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")


def needs_browser():
    """Skip unless Chromium, its driver and selenium are here."""
    pytest.importorskip("selenium", reason="selenium is not installed (extra `browser`)")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver here (on Debian: apt-get install chromium chromium-driver)")


def start(width=1400, height=1000):
    """A browser window of this size."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        f"window-size={width},{height}",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


class Page:
    """A report in a browser: what it says, and where things lie on it."""

    def __init__(self, browser, path):
        self.browser = browser
        begin = time.monotonic()
        browser.get(path.as_uri())
        while not self.run("return document.body.dataset.ready"):
            assert time.monotonic() - begin < 30, self.run("return document.body.innerText")
            time.sleep(0.02)
        self.opened_s = time.monotonic() - begin

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def errors(self):
        return [
            entry["message"] for entry in self.browser.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}
        ]

    def settle(self):
        """Wait until what was asked for has been drawn."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)));"
        )

    def point(self, number, rank, time_ns, part="boxes"):
        """Where on the screen a part of a lane lies at a time, scrolled into sight."""
        self.run("timelines[arguments[0]].host.scrollIntoView({block: 'start', behavior: 'instant'})", number)
        return self.run(
            """const t = timelines[arguments[0]], place = t.place(), at = t.plot.over.getBoundingClientRect();
            const box = place.parts(arguments[1])[arguments[3]];
            return [Math.round(at.left + (place.x(arguments[2]) - place.left) / devicePixelRatio),
                    Math.round(at.top + (box.top + box.height / 2 - place.top) / devicePixelRatio)];""",
            number, rank, time_ns, part,
        )  # fmt: skip

    def hover(self, number, rank, time_ns, part="boxes", *, click=False):
        """Move the pointer there; gives what the tip says."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        x, y = self.point(number, rank, time_ns, part)
        actions = ActionBuilder(self.browser)
        actions.pointer_action.move_to_location(x, y)
        if click:
            actions.pointer_action.click()
        actions.perform()
        self.settle()
        return self.run("return document.getElementById('tip').innerText")

    def details(self):
        return self.run("return document.getElementById('details').innerText")

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()
        self.settle()
