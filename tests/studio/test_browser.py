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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="no browser: install chromium and chromium-driver")
FLAGS = [
    "--headless",
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]
SECONDS = 180


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address that the terminal prints."""
    command = [sys.executable, "-m", "assay", "studio", "credit", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http\S+", process.stdout.readline())
    assert found
    yield found[0]
    process.terminate()
    process.wait(timeout=30)


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
    return WebDriverWait(browser, SECONDS).until(told)


def says(browser: Any, words: str) -> None:
    """Wait until the page holds the words: a click returns before the next page is there."""
    until(browser, lambda page: words in page.page_source)


def look(browser: Any, name: str) -> None:
    """Keep a picture, and check the page: nothing from elsewhere, no script error, nothing that shuts people out."""
    if folder := os.environ.get("ASSAY_SHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))
    here = urlsplit(browser.current_url).netloc
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked = urlsplit(message["params"]["request"]["url"])
            assert asked.scheme not in ("http", "https", "ws", "wss") or asked.netloc == here, asked
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []
    if axe := os.environ.get("ASSAY_AXE"):
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": Path(axe).read_text(encoding="utf-8")})
        found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        assert serious == [], [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in serious]


def press(browser: Any, css: str) -> None:
    button = browser.find_element(By.CSS_SELECTOR, css)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def follow(browser: Any, text: str) -> None:
    """Click a link, also where the page puts a newer one in its place meanwhile."""

    def clicked(page: Any) -> bool:
        try:
            page.find_element(By.LINK_TEXT, text).click()
        except StaleElementReferenceException:
            return False
        return True

    until(browser, clicked)


def test_from_table_to_prediction_as_a_person_does_it(browser: Any, address: str) -> None:
    browser.get(address)
    follow(browser, "credit")
    says(browser, "Predict “default”")
    look(browser, "table")
    press(browser, "form[action$=learn] summary")
    browser.find_element(By.ID, "learners").send_keys("LogisticRegression GaussianNB")
    press(browser, "form[action$=learn] button")
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
    for name in ("Compare", "Plan", "Learn"):
        follow(browser, name)
        look(browser, name.lower())
    follow(browser, "The centres of k-means")
    shown = [figure.is_displayed() for figure in browser.find_elements(By.CSS_SELECTOR, "[data-step]")]
    press(browser, "[data-go='1']")
    after = [figure.is_displayed() for figure in browser.find_elements(By.CSS_SELECTOR, "[data-step]")]
    assert shown.index(True) + 1 == after.index(True)
    look(browser, "steps")
    press(browser, "button[lang=zh]")
    until(browser, lambda page: page.find_elements(By.CSS_SELECTOR, "html[lang=zh]"))
    browser.set_window_size(390, 844)
    for link in ("表格", "模型"):
        follow(browser, link)
        wide = browser.execute_script("return document.documentElement.scrollWidth > innerWidth")
        assert not wide, f"{link} is wider than a phone"
        look(browser, f"phone-{link}")


def _move_the_sliders(browser: Any) -> None:
    move = "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('input'))"
    before = browser.find_element(By.CSS_SELECTOR, "[data-out=missed_most]").text
    browser.execute_script(move, "#threshold-at", "0.1")
    assert browser.find_element(By.CSS_SELECTOR, "[data-out=threshold]").text == "0.10"
    assert browser.find_element(By.CSS_SELECTOR, "[data-out=missed_most]").text != before
    browser.execute_script(move, "#coverage-at", "0")
    assert browser.find_element(By.CSS_SELECTOR, "[data-out=coverage]").text == "50 %"


def test_a_link_works_once(browser: Any, address: str) -> None:
    browser.get(address)
    says(browser, "has been used")


def test_keys_reach_the_content_first(browser: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(address.partition("/open")[0] + "/plan")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.get_attribute("class") == "skip"
    first.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"
