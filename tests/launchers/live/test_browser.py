"""A browser sees the runs as they go on, their end and the index, without a reload."""

import itertools
import os
import re
import shutil
import threading

import pytest

from launchers.live.cached_page import CachedPage, ServedPage
from launchers.live.site import ServedSite, make_site
from launchers.live.state import KILLED, StateReader
from leaderboards.report.index_page import render_index_html
from leaderboards.survey import read_line
from suite.base.errors import SpecError
from suite.papers import get_suite
from tests.launchers.live.conftest import begin, grid_of, served, site_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<img src=x onerror=\"document.title='stolen'\">\x1b[31m</script>"

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="no Chromium: apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=300_000)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=300_000)
    expect.set_options(timeout=5_000)


@pytest.fixture
def page(browser):
    """A window that notes every request, and every error of a script."""
    page = browser.new_page()
    page.set_default_timeout(300_000)
    page.errors, page.asked = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    page.close()


@needs_chromium
def test_the_page_follows_the_runs_without_a_reload_and_says_when_the_grid_has_ended(tmp_path, finish, page):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    grid = grid_of(tmp_path)
    first, second = grid.experiments[:2]
    run = begin(tmp_path, first, loss=2.25, images_per_s=64.0)
    failed = begin(tmp_path, second)
    failed.record_failure("error", HOSTILE)
    begin(tmp_path, grid.experiments[2]).record_failure("error", "a long reason " * 50)
    with served(site_of(grid)) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        row = page.locator("#t-live tbody tr", has_text="deit_micro 3.75 %")
        expect(row).to_contain_text("15 of 60")
        page.evaluate("window.sinceTheStart = true")
        for width, scheme in itertools.product((390, 768, 1440), ("light", "dark")):
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            assert not Axe().run(page).response["violations"], (width, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") == width
        assert row.locator("svg path").nth(1).evaluate("(one) => getComputedStyle(one).stroke") != "none"  # of top-1
        expect(page.locator("#t-live tbody tr").first).to_contain_text("<img src=x onerror=")
        page.locator('[data-filter="t-convit_table2"]').fill("DeiT nothing")  # stays, though the board is renewed
        run.append_metrics({"step": 30, "num_steps": 60, "epoch": 2.0, "loss": 1.5, "images_per_s": 64.0})
        expect(row).to_contain_text("1.5000")
        finish(first)
        expect(row).to_contain_text("done")
        expect(page.locator("td.done").first).to_contain_text("50")
        assert page.locator('[data-filter="t-convit_table2"]').input_value() == "DeiT nothing"
        assert page.locator("#t-convit_table2 tbody tr:visible").count() == 0
        assert page.evaluate("window.sinceTheStart") is True
        assert {url.partition(f":{port}/")[0] for url in page.asked} == {"http://127.0.0.1"}
        expect(row.locator("svg path").first).to_have_attribute("d", re.compile("^M25.0 .*L50.0 "))
        expect(page.locator("[data-live-part=share]")).to_have_attribute("value", re.compile("^0.3"))
        expect(page.locator("#t-live th", has_text="Node")).to_be_hidden()  # as no run fills it
        long = page.locator("#t-live details", has_text="a long reason")
        expect(long.locator("summary")).to_contain_text("a long reason")
        expect(long).not_to_have_attribute("open", "")
    expect(page.locator("[data-live-part=lost]")).to_contain_text("No answer since")
    expect(page.locator("[data-live]")).to_have_class("gone")
    assert page.title().startswith("sample_efficiency")
    assert page.errors == []


@needs_chromium
@pytest.mark.parametrize("how", ["", KILLED])
def test_the_page_tells_how_the_grid_ended_and_greys_nothing_of_a_grid_that_told_it(tmp_path, finish, page, how):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    grid = grid_of(tmp_path)
    for experiment in grid.experiments[: None if how == "" else 3]:
        finish(experiment)
    state = StateReader(grid, "python launchers/grid.py --suite sample_efficiency")
    with served(make_site(grid, state)) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page.locator("#t-live tbody tr")).to_have_count(10)
        expect(page.locator("[data-live-part=end]")).to_be_hidden()
        state.end(how)
        told = "The grid was killed: 3 of 10 done" if how else "10 of 10 done in "
        expect(page.locator("[data-live-part=end]")).to_contain_text(told)
        assert not Axe().run(page).response["violations"]
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(200)
    expect(page.locator("[data-live-part=lost]")).to_be_hidden()
    assert page.errors == []


@needs_chromium
def test_the_index_shows_itself_once_it_is_made_and_is_kept_up_to_date(tmp_path, finish, page):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    suite, made = get_suite("sample_efficiency"), threading.Event()
    experiments = suite.profile("smoke").experiments()

    def make():
        if not made.is_set():
            raise SpecError("there is no run store")
        return ServedPage.of(render_index_html([read_line(suite, "smoke", tmp_path)], [], grid="./"), "text/html")

    finish(experiments[0])
    with served(ServedSite({"index.html": CachedPage(make, 0.01, share=1.0)})) as port:
        page.goto(f"http://127.0.0.1:{port}/index.html")
        expect(page.locator("body")).to_contain_text("there is no run store. This page comes by itself")
        made.set()
        row = page.locator("#t-boards tbody tr")
        expect(row).to_contain_text("3 of 45")
        assert not Axe().run(page).response["violations"]
        page.evaluate("window.sinceTheStart = true")
        page.locator('[data-filter="t-boards"]').fill("sample")
        finish(experiments[1])
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # else it looks in ten seconds
        expect(row).not_to_contain_text("3 of 45")
        assert page.locator('[data-filter="t-boards"]').input_value() == "sample"
        assert page.evaluate("window.sinceTheStart") is True
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("main > .lost")).to_contain_text("the grid has ended, or was stopped")
    assert page.errors == []
