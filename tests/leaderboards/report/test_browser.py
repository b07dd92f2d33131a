"""The pages in a real browser: Debian's Chromium, headless. One browser and one set of pages serve all tests."""

import json
import os
import shutil
from pathlib import Path

import pytest

from leaderboards.board_files import write_leaderboard, write_pages
from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.budget import estimate_cost
from leaderboards.judged_claims import judge
from leaderboards.survey import IndexLine
from suite.papers import get_suite
from suite.store.results import PROTOCOL_VERSION, Failure, Result
from suite.store.run_directory import RunDirectory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="no Chromium: apt-get install chromium"
)
HOSTILE = "<img src=x onerror=\"document.title='stolen'\">\x1b[31m=cmd|' /C calc'!A0</script>"
TABLE = "#t-convit_table2"


def train(store, experiment, top1):
    """A finished run that has logged two evaluations; made on a device with a hostile name."""
    run, steps = RunDirectory.of(store, experiment), experiment.num_steps(50_000)
    run.create(experiment)
    counts = {"num_train_images": 50_000, "num_test_images": 10_000, "num_steps": steps, "num_parameters": 1000,
              "images_seen": steps * experiment.recipe.batch_size, "num_ranks": 1, "num_attempts": 1}  # fmt: skip
    rates = {"top1_percent": top1, "top5_percent": 90.0, "best_top1_percent": top1, "test_loss": 1.0}
    made = {"train_s": 1.0, "images_per_s": 80.0, "device_hours": 0.25, "device": HOSTILE, "commit": "c0ffee" * 7,
            "finished_at": "2000-01-01T00:00:00+00:00", "protocol_version": PROTOCOL_VERSION}  # fmt: skip
    run.write_result(Result.model_validate({"experiment": experiment, **counts, **rates, **made}))
    for epoch in (1, 2):
        line = {"step": epoch, "num_steps": 2, "epoch": epoch / 2, "top1_percent": top1 - 4 + 2 * epoch, "test_loss": 1}
        run.append_metrics(line)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder with the index, the claims' pages and a board of two seeds, one of whose runs failed."""
    store = tmp_path_factory.mktemp("store")
    suite = get_suite("sample_efficiency")
    patch = pytest.MonkeyPatch()
    patch.setattr("os.fsync", lambda descriptor: None)
    for number, experiment in enumerate(suite.profile("laptop").experiments(range(2))):
        train(store, experiment, 40.0 + number % 7 + experiment.seed / 4)
    failed = RunDirectory.of(store, suite.profile("laptop").entries[-1].experiment)
    failed.result_path.unlink()
    failed.write_failure(Failure(kind="error", reason=HOSTILE, log_path="log.txt"))
    leaderboard = make_leaderboard(suite, "laptop", store)
    claims = judge(lambda name: leaderboard if name == suite.name else None, "laptop")
    line = IndexLine(suite, "laptop", leaderboard, estimate_cost(leaderboard.profile, leaderboard.collection))
    out = store / "leaderboards"
    write_leaderboard(leaderboard, out / suite.name)
    (out / "claims").mkdir()
    write_pages([line], claims, out)
    patch.undo()
    return out


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to sandbox what root starts
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)


@pytest.fixture(scope="module")
def context(browser):
    """A window that notes every request, and every error of a script."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.asked, context.errors = [], []
    context.on("request", lambda request: context.asked.append(request.url))
    context.on("weberror", lambda error: context.errors.append(str(error.error)))
    context.on("console", lambda said: context.errors.append(said.text) if said.type == "error" else None)
    return context


@pytest.fixture(scope="module")
def window(context):
    return context.new_page()


@pytest.fixture
def page(window, pages):
    """The suite's page, opened anew."""
    window.goto((pages / "sample_efficiency" / "laptop.html").as_uri())
    return window


def column(page, index):
    return page.locator(f"{TABLE} tbody tr:visible > :nth-child({index})").all_inner_texts()


def test_a_page_loads_nothing_and_hostile_words_run_nothing(page, context, pages):
    context.asked.clear()
    context.errors.clear()
    page.reload()
    page.locator(".canvas").first.scroll_into_view_if_needed()
    page.locator(".canvas svg").first.wait_for()
    page.locator("img[data-picture]").first.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('img[data-picture]').naturalWidth > 100")
    assert {url.partition(":")[0] for url in context.asked} <= {"file", "blob", "data"}
    assert [url for url in context.asked if url.startswith("file")] == [page.url]
    assert context.errors == []
    assert page.title().startswith("sample_efficiency")
    assert "\\x1b[31m=cmd" in page.locator("main").inner_text()
    assert (pages / "sample_efficiency" / "laptop.html").stat().st_size < 1_500_000


def test_headings_sort_by_keyboard_and_say_so(page):
    heading = page.locator(f"{TABLE} thead th").nth(2)  # of ConViT's accuracies
    sorted_by = heading.get_by_role("button")
    sorted_by.focus()
    sorted_by.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    shown = [float(text.split()[0]) for text in column(page, 3) if text[0].isdigit()]
    assert shown == sorted(shown)
    assert len(set(shown)) > 2
    sorted_by.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert [float(text.split()[0]) for text in column(page, 3) if text[0].isdigit()] == shown[::-1]


def test_rows_are_filtered_and_columns_hidden(page):
    page.locator('[data-filter="t-convit_table2"]').fill("failed")
    assert len(column(page, 1)) == 1
    assert "1 of 5 rows" in page.locator('[data-found="t-convit_table2"]').inner_text()
    page.locator('[data-filter="t-convit_table2"]').fill("")
    page.locator("details.columns summary").first.click()
    page.locator('[data-of="t-convit_table2"][data-column="0"]').uncheck()
    assert not page.locator(f"{TABLE} thead th").nth(1).is_visible()
    assert all(not cell.is_visible() for cell in page.locator(f"{TABLE} tbody tr > :nth-child(2)").all())
    assert len(column(page, 3)) == 5


def test_pointing_at_a_number_shows_its_runs_and_focus_does_so_too(page):
    number = page.locator(f"{TABLE} button[data-runs]").first
    number.hover()
    runs = page.get_by_role("dialog")
    runs.wait_for()
    told = runs.inner_text()
    assert "c0ffeec0ff" in told
    assert "<img src=x onerror=" in told
    assert "--suite sample_efficiency --profile laptop --seeds 2 --only" in told
    assert [line.split("\t")[0] for line in told.splitlines() if "memory" in line] == ["0", "1"]
    page.keyboard.press("Escape")
    assert not runs.is_visible()
    page.locator(f"{TABLE} button[data-runs]").nth(1).focus()
    runs.wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Close"
    page.keyboard.press("Enter")
    assert not runs.is_visible()


def test_what_is_drawn_late_moves_nothing_away_from_under_a_pointer(page):
    def places():
        return page.locator("[data-download]").evaluate_all(
            "(all) => all.map((button) => button.getBoundingClientRect().top + scrollY)"
        )

    page.wait_for_function("!document.querySelector('img[data-picture][src]')")
    before = places()
    for late in page.locator(".canvas, img[data-picture]").all():
        late.scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('img[data-picture]')].every((one) => one.naturalWidth > 100)")
    page.wait_for_function("[...document.querySelectorAll('.canvas')].every((one) => one.querySelector('svg'))")
    assert len(before) > 10
    assert places() == pytest.approx(before, abs=1)  # pixels: a picture's size is written in whole ones


def test_downloads_are_the_files_that_lie_beside_the_page(page, pages):
    for name in ("convit_table2.csv", "figure2a.svg", "figure2a.pdf"):
        with page.expect_download() as saving:
            page.locator(f'[data-download="laptop.{name}"]').click()
        assert Path(saving.value.path()).read_bytes() == (pages / f"sample_efficiency/laptop.{name}").read_bytes()
    with page.expect_download() as saving:
        page.locator('[data-download="laptop.convit_table2.tex"]').click()
    assert r"\toprule" in Path(saving.value.path()).read_text()


def test_a_chart_shows_the_chosen_runs_zooms_and_is_saved(page):
    from playwright.sync_api import expect

    chart = page.locator('[data-chart="chart-learning_curves"]')
    chart.scroll_into_view_if_needed()
    chart.locator("svg").wait_for()
    assert chart.locator("svg g.mark-line path").count() == 7
    chart.locator("[data-line]:checked").first.uncheck()
    expect(chart.locator("svg g.mark-line path")).to_have_count(6)
    ticks = chart.locator("svg .role-axis-label").first.text_content()
    chart.get_by_role("button", name="Zoom in").click()
    expect(chart.locator("svg .role-axis-label").first).not_to_have_text(ticks)
    with page.expect_download() as saving:
        chart.locator("[data-svg]").click()
    assert Path(saving.value.path()).read_text().startswith("<svg")
    with page.expect_download() as saving:
        chart.locator('[data-download="laptop.learning_curves.pdf"]').click()
    assert Path(saving.value.path()).read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["sample_efficiency/laptop", "claims/convit", "findings", "index"])
def test_axe_finds_nothing(window, pages, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    window.emulate_media(color_scheme=scheme)
    window.goto((pages / f"{name}.html").as_uri())
    for button in window.locator("button[data-runs]").all()[:1]:
        button.click()
    found = Axe().run(window).response["violations"]
    assert not found, json.dumps([(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found], indent=1)
    assert window.evaluate("getComputedStyle(document.body).backgroundColor") in {
        "light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"
    }[scheme]  # fmt: skip


@pytest.mark.parametrize("name", ["sample_efficiency/laptop", "claims/convit", "findings", "index"])
def test_a_page_is_as_wide_as_a_phone_and_its_links_lead_somewhere(window, pages, name):
    window.set_viewport_size({"width": 390, "height": 844})
    window.goto((pages / f"{name}.html").as_uri())
    assert window.evaluate("document.documentElement.scrollWidth") == 390
    window.set_viewport_size({"width": 1280, "height": 900})
    for href in {link.get_attribute("href") for link in window.locator("a").all()}:
        file, _, place = href.partition("#")
        target = (pages / f"{name}.html").parent / file if file else pages / f"{name}.html"
        assert target.is_file(), href
        assert not place or f'id="{place}"' in target.read_text(), href
