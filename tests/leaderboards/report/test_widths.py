"""Every page on a phone, a tablet and a desk, light and dark, in print and without scripts."""

import json
import re

import pytest

WIDTHS, SCHEMES = (390, 768, 1440), ("light", "dark")
PAPERS = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
NAMES = ("sample_efficiency/laptop", "claims/convit", "findings", "index", "custom")
BOARD = "sample_efficiency/laptop"
DRAWN = "(all) => all.map((one) => one.complete && one.naturalWidth > 100)"


@pytest.fixture(params=[(width, scheme) for width in WIDTHS for scheme in SCHEMES], ids=str)
def look(request, browser, pages):
    """Opens a page by its name at one width, light or dark."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()

    def look(name):
        page.goto((pages / f"{name}.html").as_uri())
        return page

    look.width, look.scheme = width, scheme
    yield look
    context.close()


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(look, name):
    from axe_playwright_python.sync_playwright import Axe

    page = look(name)
    for button in page.locator("button[data-runs]").all()[:1]:
        button.click()
    found = Axe().run(page).response["violations"]
    assert not found, json.dumps([(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found], indent=1)
    assert page.evaluate("document.documentElement.scrollWidth") == look.width
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == PAPERS[look.scheme]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_paper_and_browsers_without_scripts_have_every_picture(browser, pages, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=False
    )
    page = context.new_page()
    page.goto((pages / f"{BOARD}.html").as_uri())
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        drawn = [image.bounding_box() for image in page.locator("img").all()]
        assert [box["width"] > 100 and box["height"] > 100 for box in drawn] == [True] * 3  # 2a, 11c, learning curves
        assert page.locator(".effects svg circle").count() == 4  # of one a seed failed
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(page.locator("img").evaluate_all(DRAWN))
    page.goto((pages / "index.html").as_uri())
    assert page.locator("#t-boards svg circle").count() == 1
    context.close()


def test_the_first_screen_of_the_index_says_the_gain_its_uncertainty_and_the_papers(look):
    page = look("index")
    box = page.locator(".headline").bounding_box()
    assert box["y"] + box["height"] < 0.7 * 844
    told = page.locator(".headline").inner_text()
    assert re.search(r"labels are scarce\? .*5 % of the images: .* 2 training seeds.*own scale: \+13.0", told)


def test_a_row_of_the_index_is_a_question_its_answer_and_its_effect_beside_the_papers(look):
    (row,) = look("index").locator("#t-boards tbody tr").all()
    told = " ".join(row.inner_text().split())
    assert re.search(r"scarce\? failed runs Failed runs at laptop scale\. The claim: ConViT-S is better", told)
    assert "Effect: ConViT over DeiT on 5 % of the images." in told
    assert [link.get_attribute("href").partition("#")[0] for link in row.locator("a").all()] == [
        "sample_efficiency/laptop.html", "claims/convit.html", "https://arxiv.org/abs/2103.10697"
    ]  # fmt: skip
    plots = [plot.bounding_box() for plot in row.locator("svg.plot").all()]
    assert [plot["width"] > 100 for plot in plots] == [True, True]


def test_a_board_begins_with_its_answer_and_effect_then_come_claims_tables_figures_and_notes(look):
    page = look(BOARD)
    headings = page.locator("main h2").all_inner_texts()
    assert headings == [
        "The effect", "Claims that speak of this board", "Table 2", "Fig. 11c, relative gain", "The paper's figures",
        "Notes on the runs", "How to read this",
    ]  # fmt: skip
    assert page.locator(".headline").first.inner_text().startswith("Failed runs at laptop scale.")


def test_labels_are_words_with_units_and_headings_stand_above_their_numbers(look):
    page, table = look(BOARD), "#t-convit_table2"
    if look.width == 390:
        said = page.locator(f"{table} tbody td").first.evaluate("(one) => getComputedStyle(one, '::before').content")
        assert said == '"DeiT top-1, %"'
        return
    for heading in page.locator(f"{table} thead th.number").all():
        assert heading.evaluate("(one) => getComputedStyle(one).textAlign") == "right"
    assert page.locator(f"{table} thead button").nth(1).get_attribute("title") == "deit_top1 in the CSV"
    assert page.locator(f"{table} thead th").nth(1).inner_text().startswith("DeiT top-1, %")
    assert "not counted" not in page.locator(".counts").inner_text()  # as nothing is void
    assert "core-hours to go" not in page.content()


@pytest.mark.parametrize("name", NAMES)
def test_on_a_phone_rows_are_cards_and_nothing_that_sticks_is_wider_than_half_of_it(look, name):
    page = look(name)
    sticky = page.locator("th").evaluate_all(
        "(all) => all.filter((one) => getComputedStyle(one).position === 'sticky' && one.offsetParent"
        " && getComputedStyle(one).left !== 'auto').map((one) => one.offsetWidth)"
    )
    assert all(width <= look.width / 2 for width in sticky)
    for cell in page.locator(".cards tbody td[data-label]:visible").all()[:3]:
        named = cell.evaluate("(one) => getComputedStyle(one, '::before').content !== 'none'")
        assert named == (look.width < 640)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_the_menu_and_all_links_lead_somewhere(look, pages, name):
    page = look(name)
    page.locator("nav summary").click()
    assert page.locator("nav details a").first.is_visible()
    for href in {link.get_attribute("href") for link in page.locator("a:not([href^=https])").all()}:
        file, _, place = href.partition("#")
        target = (pages / f"{name}.html").parent / file if file else pages / f"{name}.html"
        assert target.is_file(), href
        assert not place or f'id="{place}"' in target.read_text(), href


def test_tables_of_custom_models_filter_sort_and_fold(look):
    page = look("custom")
    rows = page.locator("#t-custom tbody tr")
    count = rows.count()
    page.locator('[data-filter="t-custom"]').fill("mine")
    assert page.locator("#t-custom tbody tr:visible").count() == count
    page.locator('[data-filter="t-custom"]').fill("nothing of this")
    assert page.locator("#t-custom tbody tr:visible").count() == 0
    page.locator('[data-filter="t-custom"]').fill("")
    if look.width > 640:
        page.locator("#t-custom thead button").nth(4).click()
        values = [
            float(one.get_attribute("data-sort")) for one in page.locator("#t-custom tbody td:nth-child(5)").all()
        ]
        assert values == sorted(values)
    page.locator("#h-custom-models ~ details summary").first.click()
    assert not rows.first.is_visible()
