"""All pages of a store: every link leads somewhere, and what cannot be made is told."""

import html
import re
from urllib.parse import urljoin

from suite.papers import get_suite
from tests.launchers.live.conftest import ask, grid_of, served, site_of


def ask_till_made(port, path):
    """Ask as a browser does that is told to come again."""
    for _ in range(1000):
        status, said, headers = ask(port, path)
        if status != 503:
            return status, said, headers
    raise AssertionError(f"{path} is still being made")


def crawl(port, start):
    """Every page and file that can be reached, by its path, and every place within them that is linked to."""
    found, places, left = {}, set(), [start]
    while left:
        path = left.pop()
        status, said, headers = ask_till_made(port, path)
        assert status in (200, 302), path
        found[path] = said
        links = [headers["Location"]] if status == 302 else re.findall(r'<a [^>]*href="(?!https:)([^"]*)"', said)
        for link in (html.unescape(urljoin(path, link)) for link in links):
            target, _, place = link.partition("#")
            places |= {(target, place)} if place else set()
            left += [] if target in found or target in left else [target]
    return found, places


def test_every_link_leads_somewhere_from_the_grids_page_to_the_index_the_claims_and_other_boards(tmp_path, finish):
    grid = grid_of(tmp_path)
    for experiment in [*grid.experiments, *get_suite("sample_efficiency").profile("laptop").experiments(range(5))]:
        finish(experiment)
    with served(site_of(grid), "s3cret") as port:
        found, places = crawl(port, "/s3cret/")
        board = "/s3cret/sample_efficiency/"
        assert {
            "/s3cret/index.html",
            "/s3cret/findings.html",
            "/s3cret/claims/convit.html",
            f"{board}laptop.html",
        } < set(found)
        for picture in ("/s3cret/smoke.figure2a.svg", f"{board}laptop.figure2a.svg"):  # for pages that are too large
            assert ask_till_made(port, picture)[0] == 200
        assert found[f"{board}smoke.html"] == ""  # the grid's own, which is at the root
        for target, place in places:
            assert f'id="{place}"' in found[target], place
        assert {target for target, _ in places} > {f"{board}laptop.html", "/s3cret/claims/convit.html"}
        assert "default-src 'none'" in ask(port, "/s3cret/smoke.figure2a.svg")[2]["Content-Security-Policy"]
        for none in ("sample_efficiency/gpu.html", "sample_efficiency/none.html", "none/laptop.html", "smoke.none.svg"):
            assert ask_till_made(port, f"/s3cret/{none}")[0] == 404
    for said in (found["/s3cret/"], found["/s3cret/index.html"]):
        assert re.search("<noscript><p[^>]*>[^<]* scripts", said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["experiments"]  # nothing was written


def test_why_a_page_cannot_be_made_is_told(tmp_path):
    with served(site_of(grid_of(tmp_path / "none"))) as port:
        status, said, headers = ask(port, "/index.html")
    assert (status, headers["Retry-After"], headers["Refresh"]) == (503, "2", "2")
    assert "there is no run store" in said
