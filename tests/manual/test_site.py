"""The site of the manual and the boards is built without a complaint, and its pages need nothing that is not in it."""

import html
import html.parser
import itertools
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from leaderboards.published_boards import PUBLISHED, is_outdated, list_boards
from suite.papers import get_suite, list_suites

if os.environ.get("CI") != "true":
    pytest.importorskip("furo", reason="the extra docs is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # Sphinx's, of its own extensions

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "audio": "src",
    "video": "src",
    "object": "data",
}


class Page(html.parser.HTMLParser):
    """A page: the files it loads, where it leads, and the places within it."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.anchors, self.is_open = [], [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "prefetch"):
            self.loaded.append(given["href"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        self.loaded += re.findall(r"url\(([^)]+)\)", given.get("style", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as ``make site`` makes it, but in this process, which has torch at hand."""
    from sphinx.cmd.build import main

    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--doctree-dir", folder / "doctrees"]
    assert main([str(each) for each in (*options, ROOT / "docs", folder / "html")]) == 0
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


@pytest.fixture(scope="module")
def manual(site, pages):
    """The manual's pages; those of the boards, beside them, have tests of their own."""
    return {path: page for path, page in pages.items() if "published" not in path.relative_to(site).parts}


def test_every_page_that_is_written_is_there_and_a_suites_shows_its_question_and_its_boards(site, pages):
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {path.stem for path in pages}
    for name in list_suites():
        text = html.unescape((site / f"suites/{name}.html").read_text())
        assert get_suite(name).question in text
        for board in (ROOT / "leaderboards/published" / name).glob("*.md"):
            assert re.search(r"^Headline: .*$", board.read_text(), re.MULTILINE)[0] in text


def test_each_board_of_todays_recipe_has_its_page_which_leads_to_the_manual_and_back(site, pages):
    boards = [board for suite in list_suites() for board in list_boards(PUBLISHED / suite) if not is_outdated(board)]
    assert len(boards) > 10
    for board in boards:
        page = site / "published" / board.parent.name / f"{board.stem}.html"
        assert "../../index.html" in pages[page].links
        suite = site / f"suites/{board.parent.name}.html"
        assert f"../published/{board.parent.name}/{page.name}" in pages[suite].links
    assert "published/index.html" in pages[site / "suites.html"].links


def test_the_site_is_small_enough_to_be_published(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 40_000_000


def test_the_search_finds_a_board_by_a_word_of_its_headline(site):
    index = (site / "searchindex.js").read_text()
    assert '"suites/sample_efficiency"' in index
    assert '"deit":' in index


def test_no_page_loads_anything_from_elsewhere(site, pages):
    assert [(path.name, each) for path, page in pages.items() for each in page.loaded if urlsplit(each).netloc] == []
    for style in site.glob("_static/**/*.css"):
        assert [each for each in re.findall(r"url\(['\"]?([^)'\"]+)", style.read_text()) if urlsplit(each).netloc] == []
        assert "@import" not in style.read_text()
    assert not list(site.glob("_static/**/mathjax*"))


def test_every_link_within_the_site_leads_to_a_place(site, pages):
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (
                target in pages and parts.fragment and parts.fragment not in pages[target].anchors
            ):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_formulas_are_drawn_by_the_browser_itself(site):
    assert (site / "theorems.html").read_text().count("<math ") > 20


def test_what_scrolls_within_a_page_is_reached_by_the_keyboard_and_its_sides_have_names(manual):
    for path in manual:
        text = path.read_text()
        assert "<pre>" not in text
        assert '<div class="table-wrapper ' not in text
        assert re.findall(r"<aside (?!.*aria-label).*>|<[^>]* role=.heading.(?! aria-level)", text) == [], path


@pytest.fixture(scope="module")
def browser_page():
    if CHROMIUM is None and os.environ.get("CI") != "true":
        pytest.skip("no Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=300_000).new_page()
        page.set_default_timeout(300_000)
        yield page


def test_axe_finds_nothing_on_a_page_of_each_kind(site, browser_page):
    from axe_playwright_python.sync_playwright import Axe

    kinds = ("index", "search", "measured", "api/boards", "claims/convit", "suites/convit_masking")
    looks = [*((name, "light") for name in kinds), *((name, "dark") for name in kinds[-2:])]
    for (name, scheme), width in itertools.product(looks, (390, 768, 1440)):
        browser_page.set_viewport_size({"width": width, "height": 844})
        browser_page.emulate_media(color_scheme=scheme)
        browser_page.goto((site / f"{name}.html").as_uri())
        found = Axe().run(browser_page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == [], (name, scheme, width)


def test_a_board_s_page_shows_all_of_its_figures(site, browser_page):
    browser_page.goto((site / "published" / "sample_efficiency" / "laptop.html").as_uri())
    shown = browser_page.evaluate("[...document.images].map(image => [image.dataset.file, image.naturalWidth])")
    assert len(shown) == 4
    assert [name for name, width in shown if width == 0] == []
