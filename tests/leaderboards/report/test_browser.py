"""The pages in a real browser: what a reader does with them, and what hostile words do not."""

from pathlib import Path

import pytest

TABLE = "#t-convit_table2"


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
    assert all(page.locator("img").evaluate_all("(all) => all.map((one) => one.complete && one.naturalWidth > 100)"))
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
