"""What a person does on each page, in a real browser; a request to another host fails the test.

Screenshots go to the folder in ASSAY_SHOTS, if it is set; axe-core (ASSAY_AXE, a file from the npm registry) looks for
what shuts people out.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import (  # noqa: E402
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.expected_conditions import staleness_of  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="no browser: install chromium and chromium-driver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
SECONDS = 180
GONE = (
    ElementClickInterceptedException, ElementNotInteractableException, NoSuchElementException,
    StaleElementReferenceException, StopIteration, ValueError,
)  # fmt: skip
"""What a page that is not there yet, or is being replaced, answers to somebody in a hurry."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that the terminal prints."""
    folder = str(tmp_path_factory.mktemp("project"))
    command = [sys.executable, "-m", "assay", "studio", "credit", "--no-browser", "--folder", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http\S+", process.stdout.readline())
    assert found
    yield found[0]
    process.terminate()
    process.wait(timeout=300)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}", "--window-size=1200,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def until(browser: Any, told: Callable[[Any], Any]) -> Any:
    """Wait for what is told of the page; an element that the page replaced meanwhile is looked for again."""
    return WebDriverWait(browser, SECONDS, ignored_exceptions=GONE).until(told)


def says(browser: Any, words: str) -> None:
    """Wait until the page holds the words: a click returns before the next page is there."""
    until(browser, lambda page: words in page.page_source)


def find(browser: Any, css: str) -> Any:
    """Wait for an element that can be seen."""

    def seen(page: Any) -> Any:
        return next(one for one in page.find_elements(By.CSS_SELECTOR, css) if one.is_displayed())

    return until(browser, seen)


def reads(browser: Any, css: str, told: Callable[[str], bool]) -> None:
    """Wait until the text of an element is as told."""
    until(browser, lambda page: told(page.find_element(By.CSS_SELECTOR, css).text))


def press(browser: Any, css: str) -> None:
    def pressed(page: Any) -> bool:
        button = page.find_element(By.CSS_SELECTOR, css)
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        return True

    until(browser, pressed)


def follow(browser: Any, text: str) -> None:
    """Click a link, also where the page puts a newer one in its place meanwhile; wait for the page it leads to."""
    before = browser.find_element(By.TAG_NAME, "html")

    def clicked(page: Any) -> bool:
        page.find_element(By.LINK_TEXT, text).click()
        return True

    until(browser, clicked)
    until(browser, staleness_of(before))
    filled(browser)


def filled(browser: Any) -> None:
    """Wait until nothing on the page is still being worked out."""
    until(browser, lambda page: page.execute_script("return document.readyState") == "complete")
    until(browser, lambda page: not page.find_elements(By.CSS_SELECTOR, "[data-wait]"))


def look(browser: Any, name: str) -> None:
    """Keep a picture, and check the page: nothing from elsewhere, no script error, nothing that shuts people out."""
    filled(browser)
    if folder := os.environ.get("ASSAY_SHOTS"):
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        (Path(folder) / f"{name}.png").write_bytes(b64decode(shot["data"]))
    here = urlsplit(browser.current_url).netloc
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked = urlsplit(message["params"]["request"]["url"])
            assert asked.scheme not in ("http", "https", "ws", "wss") or asked.netloc == here, asked
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []
    assert not browser.execute_script("return document.documentElement.scrollWidth > innerWidth"), f"{name} is too wide"
    if axe := os.environ.get("ASSAY_AXE"):
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": Path(axe).read_text(encoding="utf-8")})
        found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        assert serious == [], [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in serious]


def test_from_table_to_prediction_as_a_person_does_it(browser: Any, address: str) -> None:
    browser.get(address)
    follow(browser, "credit")
    says(browser, "Predict “default”")
    look(browser, "table")
    press(browser, "form[action$=learn] .card summary")
    find(browser, "#learners").send_keys("LogisticRegression")
    press(browser, "form[action$=learn] .card button")
    find(browser, "[data-live]")
    look(browser, "running")
    until(browser, lambda page: page.find_elements(By.LINK_TEXT, "Look at the model"))
    look(browser, "run")
    follow(browser, "Look at the model")
    look(browser, "model")
    _move_the_sliders(browser)
    press(browser, "#verified button")
    says(browser, "The certificate holds")
    follow(browser, "Try")
    press(browser, "main form button")
    says(browser, "Prediction of")
    look(browser, "try")
    _learn_again(browser, "GaussianNB")
    for name in ("Code", "Compare", "Plan", "Learn"):
        follow(browser, name)
        look(browser, name.lower())
    _plan(browser)
    _step(browser)


def _learn_again(browser: Any, learner: str) -> None:
    """A second study, so that there is something to compare."""
    follow(browser, "Table")
    press(browser, "form[action$=learn] .card summary")
    find(browser, "#learners").send_keys(learner)
    press(browser, "form[action$=learn] .card button")
    until(browser, lambda page: page.find_elements(By.LINK_TEXT, "Look at the model"))


def _move_the_sliders(browser: Any) -> None:
    move = "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('input'))"
    before = find(browser, "[data-out=missed_band]").text
    browser.execute_script(move, "#threshold-at", "0.1")
    reads(browser, "[data-out=threshold]", lambda text: text == "0.10")
    reads(browser, "[data-out=missed_band]", lambda text: text != before)
    drawn = find(browser, "#threshold-figure").get_attribute("innerHTML")
    browser.execute_script(move, "#miss", "7")
    until(browser, lambda page: page.find_element(By.ID, "threshold-figure").get_attribute("innerHTML") != drawn)
    browser.execute_script(move, "#coverage-at", "0")
    reads(browser, "[data-out=coverage]", lambda text: text == "50 %")


def _plan(browser: Any) -> None:
    """The answer follows what is typed, without a button."""
    follow(browser, "Plan")
    before = find(browser, "#answer .big").text
    width = find(browser, "#width")
    width.clear()
    width.send_keys("1")
    reads(browser, "#answer .big", lambda text: int(text.replace(",", "")) > int(before.replace(",", "")))


def _step(browser: Any) -> None:
    def shown() -> list[bool]:
        return [figure.is_displayed() for figure in browser.find_elements(By.CSS_SELECTOR, "[data-step]")]

    follow(browser, "Learn")
    follow(browser, "The centres of k-means")
    find(browser, "[data-play]")
    assert shown().index(True) == 0
    press(browser, "[data-go='1']")
    until(browser, lambda page: shown().index(True) == 1)
    press(browser, "[data-play]")
    until(browser, lambda page: shown().index(True) == len(shown()) - 1)


ALGORITHMS = ("perceptron", "kmeans", "adaboost", "smo", "em", "backprop")
ENGLISH = """
const words = /[A-Za-z]{2,}(?: [A-Za-z]{2,}){3,}/, found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const near = walk.currentNode.parentElement;
  const text = walk.currentNode.data, may = "pre, code, script, option, .facts, details [lang=en], .soft[lang=en]";
  if (!near.closest(may) && words.test(text)) found.push(text.trim());
}
return found;
"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_in_both_languages_on_desk_and_phone(browser: Any, address: str, language: str) -> None:
    """Nothing is wider than a phone, shuts people out, or is left in the other language."""
    browser.get(address.partition("/open")[0])
    press(browser, f"button[lang={language}], html[lang={language}] .brand")
    find(browser, f"html[lang={language}] body")
    browser.get(find(browser, "main table a[href*=runs]").get_attribute("href"))
    places = [one.get_attribute("href") for one in browser.find_elements(By.CSS_SELECTOR, "nav a")]
    learn = places[-1]
    names = ("home", "table", "run", "model", "try", "code", "compare", "plan", "learn")
    pages = dict(zip(names, places, strict=True))
    pages |= {name: f"{learn}/{name}" for name in ALGORITHMS} | {"card": f"{learn}?name=SVC"}
    english = {}
    for size, (width, height) in {"desk": (1200, 1000), "phone": (390, 844)}.items():
        browser.set_window_size(width, height)
        for name, place in pages.items():
            browser.get(place)
            look(browser, f"{language}-{size}-{name}")
            if language == "zh" and (left := browser.execute_script(ENGLISH)):
                english[name] = left
    assert english == {}


def test_a_link_works_once(browser: Any, address: str) -> None:
    browser.get(address)
    says(browser, "has been used")


def test_keys_reach_the_content_first(browser: Any, address: str) -> None:
    browser.get(address.partition("/open")[0] + "/plan")
    filled(browser)
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    until(browser, lambda page: page.switch_to.active_element.get_attribute("class") == "skip")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    until(browser, lambda page: page.switch_to.active_element.get_attribute("id") == "main")
