"""The pages in a real browser: Debian's Chromium, headless. One browser and one set of pages serve all tests."""

import json
import os
import re
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
DRAWN = "(all) => all.map((one) => one.complete && one.naturalWidth > 100)"


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
    assert all(page.locator("img").evaluate_all(DRAWN))
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


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_and_browsers_without_scripts_have_every_picture(browser, pages, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=False
    )
    page = context.new_page()
    page.goto((pages / "sample_efficiency" / "laptop.html").as_uri())
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        drawn = [image.bounding_box() for image in page.locator("img").all()]
        assert [box["width"] > 100 and box["height"] > 100 for box in drawn] == [True] * 3  # 2a, 11c, learning curves
        assert page.locator(".effects svg circle").count() == 4  # of one a seed failed
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(page.locator("img").evaluate_all(DRAWN))
    context.close()


def test_the_index_sorts_numbers_as_numbers(window, pages):
    window.goto((pages / "index.html").as_uri())
    window.evaluate(
        """() => {
            const body = document.querySelector("#t-boards tbody"), row = body.rows[0];
            for (const effect of [-1.5, 10, 9]) {
                const copy = row.cloneNode(true);
                copy.cells[1].dataset.sort = effect;
                copy.cells[1].textContent = effect;
                body.append(copy);
            }
            row.remove();
        }"""
    )
    window.locator("#t-boards th button").nth(1).click()
    assert window.locator("#t-boards tbody td:nth-child(2)").all_inner_texts() == ["-1.5", "9", "10"]


def test_the_first_screen_of_the_index_says_the_gain_its_uncertainty_and_the_papers(window, pages):
    window.goto((pages / "index.html").as_uri())
    for size in ({"width": 1440, "height": 900}, {"width": 390, "height": 844}):
        window.set_viewport_size(size)
        box = window.locator(".headline").bounding_box()
        assert box["y"] + box["height"] < 0.7 * size["height"]
    told = window.locator(".headline").inner_text()
    assert re.search(r"5 % of the images: .* 2 training seeds.*own scale: \+13.0", told)
    window.set_viewport_size({"width": 1280, "height": 900})


def test_headings_stand_above_their_numbers(page):
    for heading in page.locator(f"{TABLE} thead th.number").all():
        assert heading.evaluate("(one) => getComputedStyle(one).textAlign") == "right"
    assert page.locator(f"{TABLE} thead button").nth(1).get_attribute("title") == "deit_top1 in the CSV"
    assert page.locator(f"{TABLE} thead th").nth(1).inner_text().startswith("DeiT top-1, %")


def test_on_a_phone_rows_are_cards_and_nothing_that_sticks_is_wider_than_half_of_it(window, pages):
    window.set_viewport_size({"width": 390, "height": 844})
    for name in ("sample_efficiency/laptop", "claims/convit", "findings", "index"):
        window.goto((pages / f"{name}.html").as_uri())
        sticky = window.locator("th").evaluate_all(
            "(all) => all.filter((one) => getComputedStyle(one).position === 'sticky' && one.offsetParent"
            " && getComputedStyle(one).left !== 'auto').map((one) => one.offsetWidth)"
        )
        assert all(width <= 195 for width in sticky)
        for cell in window.locator(".cards tbody td:visible").all()[:3]:
            assert cell.evaluate("(one) => getComputedStyle(one, '::before').content.length") > 2
    window.set_viewport_size({"width": 1280, "height": 900})


def test_downloads_are_the_files_that_lie_beside_the_page(page, pages):
    for name in ("convit_table2.csv", "figure2a.pdf"):
        with page.expect_download() as saving:
            page.locator(f'[data-download="laptop.{name}"]').click()
        assert Path(saving.value.path()).read_bytes() == (pages / f"sample_efficiency/laptop.{name}").read_bytes()
    with page.expect_download() as saving:
        page.locator('[data-download="laptop.figure2a.svg"]').click()
    assert Path(saving.value.path()).read_text().startswith("<svg")
    with page.expect_download() as saving:
        page.locator('[data-download="laptop.convit_table2.tex"]').click()
    assert r"\toprule" in Path(saving.value.path()).read_text()


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
    for href in {link.get_attribute("href") for link in window.locator("a:not([href^=https])").all()}:
        file, _, place = href.partition("#")
        target = (pages / f"{name}.html").parent / file if file else pages / f"{name}.html"
        assert target.is_file(), href
        assert not place or f'id="{place}"' in target.read_text(), href
