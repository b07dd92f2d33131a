"""The live pages: what a browser sees while runs go on, what the server refuses, and that it ends with its grid."""

import contextlib
import errno
import html
import http.client
import io
import itertools
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urljoin

import pytest
from rich.console import Console

from launchers.command.address import Address, parse_address
from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest
from launchers.command.options import GridOptions
from launchers.grid import main
from launchers.live.cached_page import CachedPage, ServedPage
from launchers.live.server import Server
from launchers.live.serving import serving
from launchers.live.site import ServedSite, make_site
from launchers.live.state import KILLED, StateReader
from launchers.slurm.grid_status import read_status
from leaderboards.report.index_page import render_index_html
from leaderboards.survey import read_line
from suite.base.errors import SpecError
from suite.base.exit_codes import Exit
from suite.papers import get_suite
from suite.store import attempts
from suite.store.results import Failure
from suite.store.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<img src=x onerror=\"document.title='stolen'\">\x1b[31m</script>"
WORDS = ["--suite", "sample_efficiency", "--profile", "smoke"]
PAGE = ServedPage.of("<p>the board</p>", "text/html")


@contextlib.contextmanager
def served(site, token=""):
    """Yields the port of a server in this process."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Server(listening, Address("127.0.0.1", 0, token), site)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.shutdown()


def ask(port, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, headers={"Host": "localhost:9", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), dict(answer.headers)


def ask_on(port):
    """Ask for as long as there is an answer, which a process that is ending still gives."""
    for _ in range(10_000):
        ask(port, "/state.json")


@pytest.fixture(scope="module")
def port():
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)})) as port:
        yield port


@pytest.fixture(scope="module")
def secret():
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)}), token="s3cret") as port:
        yield port


@pytest.mark.parametrize("path", ["/runs", "/../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/.", "/%00"])
def test_nothing_is_served_but_the_pages(port, path):
    status, said, _ = ask(port, path)
    assert (status, said) == (404, "there is nothing here; expected /\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_only_looking_is_allowed(port, method):
    status, said, headers = ask(port, method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert "expected GET or HEAD" in said


def test_a_head_has_what_a_get_has_without_its_body_and_what_did_not_change_is_not_sent_again(port):
    status, said, headers = ask(port)
    assert (status, said, headers["Content-Type"]) == (200, "<p>the board</p>", "text/html; charset=utf-8")
    assert ask(port, method="HEAD")[:2] == (200, "")
    assert ask(port, method="HEAD")[2]["Content-Length"] == headers["Content-Length"]
    assert ask(port, **{"If-None-Match": headers["ETag"]})[:2] == (304, "")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", "192.168.0.1"])
def test_a_name_that_somebody_has_pointed_to_this_machine_is_refused(port, host):
    status, said, _ = ask(port, Host=host)
    assert (status, "answers to localhost alone" in said) == (403, True)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9000", "[::1]:80"])
def test_this_machines_own_names_are_answered_also_through_a_tunnel_of_another_port(port, host):
    assert ask(port, Host=host)[0] == 200


@pytest.mark.parametrize("path", ["/", "/wrong/", "/s3cre/", "/s3cret", "/s3cret%2f", "/?s3cret/"])
def test_another_address_needs_its_token(secret, path):
    status, said, _ = ask(secret, path)
    assert status == (404 if path == "/s3cret" else 403)
    assert "board" not in said


def test_with_its_token_any_name_is_answered(secret):
    assert ask(secret, "/s3cret/", Host="cluster.example")[:2] == (200, "<p>the board</p>")


def connect(port, said=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=600)
    connection.sendall(said)
    return connection


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x"])
def test_slow_connections_take_sixty_four_threads_at_most_and_let_others_through(said):
    before = threading.active_count()
    with (
        contextlib.ExitStack() as connections,
        served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)}), "s3cret") as port,
    ):
        for _ in range(200):
            connections.enter_context(connect(port, said))
            assert threading.active_count() < before + 80  # those that end, the server's and the page's beside
        for _ in range(3):
            assert ask(port, "/s3cret/")[0] == 200


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_request_that_does_not_come_as_a_whole_in_time_is_cut_off(monkeypatch, said):
    monkeypatch.setattr("launchers.live.server._REQUEST_S", 0.0)
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)})) as port, connect(port, said) as slow:
        assert slow.recv(1) == b""


def test_a_server_without_descriptors_waits_before_it_tries_again(monkeypatch):
    tried, pauses = [], []
    accept, sleep = socketserver.TCPServer.get_request, time.sleep

    def accept_later(self):
        tried.append(1)
        if len(tried) < 4:
            raise OSError(errno.EMFILE, "too many open files")
        return accept(self)

    monkeypatch.setattr(socketserver.TCPServer, "get_request", accept_later)
    monkeypatch.setattr("launchers.live.server._PAUSE_S", 0.0123)
    monkeypatch.setattr(time, "sleep", lambda seconds: pauses.append(seconds) or sleep(seconds))
    with served(ServedSite({"": CachedPage(lambda: PAGE, 0.01)})) as port:
        assert ask(port)[0] == 200
    assert pauses.count(0.0123) == 3


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("8000", "127.0.0.1", 8000), ("localhost", "localhost", 8000), (":0", "127.0.0.1", 0), ("[::1]:80", "::1", 80)],
)  # fmt: skip
def test_an_address_of_this_machine_alone_has_no_token(text, host, port):
    assert parse_address(text) == Address(host, port, "")


def test_another_address_has_a_token_of_its_own_each_time_which_no_message_shows():
    one, other = parse_address("0.0.0.0:8000"), parse_address("0.0.0.0:8000")
    assert one.token != other.token
    assert one.token in one.url(8000)
    assert one.token not in repr(one)


@pytest.mark.parametrize("text", ["127.0.0.1:99999", "a b:80", "host:http", "http://localhost:80", "localhost:-1"])
def test_an_address_that_is_none_is_a_misuse(capsys, text):
    with pytest.raises(SystemExit) as ended:
        main([*WORDS, "--serve", text])
    assert ended.value.code == Exit.MISUSE
    assert "expected HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_cannot_be_had_is_said_in_one_line_before_anything_is_trained(tmp_path, capsys, host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([*WORDS, "--runs", str(tmp_path / "runs"), "--serve", f"{host}:{port}"]) == Exit.MISUSE
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"grid.py: --serve cannot listen at {host}, port {port}: ")
    assert "\n" not in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("option", ["--dry-run", "--show", "--list", "--cancel"])
def test_what_does_no_work_is_not_served(capsys, option):
    assert main([*WORDS, "--serve", "--cluster", "slurm", option]) == Exit.MISUSE
    assert "goes with training, or with --status" in capsys.readouterr().err


def test_a_page_is_made_for_who_looks_and_for_nobody_else_and_not_again_before_its_time():
    made = []
    kept = CachedPage(lambda: made.append(1) or ServedPage.of(str(len(made)), "text/plain"), 600.0)
    assert not made
    assert [kept.find().content for _ in range(2)] == [b"1", b"1"]
    kept.due = 0.0
    assert kept.find().content == b"2"


def test_who_comes_while_a_page_is_made_anew_sees_that_of_before():
    made, seen = [], []

    def make():
        seen.extend(kept.find().content for _ in made)  # the second time
        return made.append(1) or ServedPage.of(str(len(made)), "text/plain")

    kept = CachedPage(make, 0.0, share=1e9)
    assert [kept.find().content for _ in range(2)] == [b"1", b"2"]
    assert seen == [b"1"]


def outlive_the_pages(error=None):
    """Let a grid go on until its pages have ended, then end, with an error if any; returns its words."""
    console = Console(file=io.StringIO(), width=10_000)
    with (
        contextlib.suppress(SpecError),
        serving(GridOptions(serve=Address("127.0.0.1", 0)), [*WORDS[:2], "--profile", "x"], console) as server,
    ):
        assert server.process.wait() == Exit.FAILED
        assert server._stderr.tell() == len(server.stderr_tail()) + 1  # no line but the last
        if error:
            raise error
    return console.file.getvalue().splitlines()[1:]


def test_pages_that_cannot_be_say_why_in_one_line_and_leave_the_grids_own_error_to_the_grid():
    (said,) = outlive_the_pages()
    assert "nothing else has: unknown profile 'x'. Valid: " in said
    assert outlive_the_pages(SpecError("the grid's own")) == []


# -- a grid


def grid_of(store):
    return GridRequest.of(parse_options([*WORDS, "--runs", str(store)]))


def site_of(grid):
    return make_site(grid, StateReader(grid))


def begin(store, experiment, **logged):
    """A run at work: its folder, an attempt and a line of metrics."""
    run = RunDirectory.of(store, experiment)
    run.create(experiment)
    attempts.record_start(run, 1)
    run.append_metrics({"step": 15, "num_steps": 60, "epoch": 1.0, **logged})
    return run


def test_the_state_is_that_of_status_with_loss_accuracy_rate_and_time_to_go(tmp_path):
    grid = grid_of(tmp_path)
    run = begin(tmp_path, grid.experiments[0], loss=2.25, top1_percent=31.5, images_per_s=64.0)
    with run.claim():
        state = StateReader(grid).read()
    assert state["summary"] == "10 runs: 1 running, 9 new, about 4:52 to go"
    assert state["share"] == 0.025
    first = state["runs"][0]
    assert (first["id"], first["state"], first["share"]) == (grid.experiments[0].id, "running", 0.25)
    left_s = 45 * grid.experiments[0].recipe.batch_size / 64
    assert [text for text, _ in first["cells"]][3:7] == ["15 of 60", "2.2500", "31.50", "64"]
    assert first["cells"][7][1] == left_s


def test_a_finished_run_is_not_read_again_until_its_result_changes(tmp_path, finish, monkeypatch):
    grid, read = grid_of(tmp_path), []
    finish(grid.experiments[0])
    reader = StateReader(grid)
    monkeypatch.setattr(
        "launchers.live.state.read_status", lambda jobs, store: read.append(len(jobs)) or read_status(jobs, store)
    )
    states = [reader.read()["summary"] for _ in range(2)]
    finish(grid.experiments[0], num_requeues=1)
    again = reader.read()
    assert read == [10, 9, 10]
    assert states == ["10 runs: 9 new, 1 done"] * 2
    assert again["runs"][-1]["cells"][8] == ("1", 1)


def test_curves_grow_and_a_run_whose_metrics_cannot_be_read_has_none(tmp_path):
    grid = grid_of(tmp_path)
    run = begin(tmp_path, grid.experiments[0], loss=2.0)
    assert StateReader(grid).read()["runs"][0]["curves"] == ["", ""]
    run.append_metrics({"step": 30, "num_steps": 60, "loss": 1.0})
    (curves,) = (one["curves"] for one in StateReader(grid).read()["runs"] if one["curves"])
    assert curves == ["M25.0 1.0L50.0 13.0", ""]
    run.metrics_path.write_text("no JSON\n" + run.metrics_path.read_text())
    assert not any(one["curves"] for one in StateReader(grid).read()["runs"])


@pytest.mark.parametrize(
    ("how", "num_done", "failed", "expected"),
    [
        ("", 10, 0, r"10 of 10 done in 0:0\d"),
        ("", 9, 1, r"9 of 10 done in 0:0\d, 1 failed\. To go on: grid --suite x --retry-failed"),
        ("Interrupted", 2, 0, r"Interrupted: 2 of 10 done in 0:0\d\. To go on: grid --suite x"),
        (KILLED, 0, 0, r"The grid was killed: 0 of 10 done in 0:0\d\. To go on: grid --suite x"),
    ],
)
def test_the_end_is_told_with_what_is_done_and_the_command_that_goes_on(
    tmp_path, finish, how, num_done, failed, expected
):
    grid = grid_of(tmp_path)
    for experiment in grid.experiments[:num_done]:
        finish(experiment)
    for experiment in grid.experiments[num_done : num_done + failed]:
        begin(tmp_path, experiment).write_failure(Failure(kind="error", reason="nan", log_path=""))
    reader = StateReader(grid, "grid --suite x")
    assert reader.read()["end"] == ""
    reader.end(how)
    state = reader.read()
    assert re.fullmatch(expected, state["end"])
    assert state["is_whole"] is (num_done == 10)


def test_a_submission_that_cannot_be_read_is_told_on_the_page(tmp_path):
    (tmp_path / "slurm" / "broken").mkdir(parents=True)
    (tmp_path / "slurm" / "broken" / "submission.json").write_text("{")
    state = StateReader(grid_of(tmp_path)).read()
    assert "submission.json: " in state["troubles"][0]


# -- all pages of a store


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


# -- in a browser

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
    failed.write_failure(Failure(kind="error", reason=HOSTILE, log_path=""))
    begin(tmp_path, grid.experiments[2]).write_failure(Failure(kind="error", reason="a long reason " * 50, log_path=""))
    with served(site_of(grid)) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        row = page.locator("#t-live tbody tr", has_text="deit_micro 3.125 %")
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


# -- beside a grid


def test_a_server_beside_a_grid_shows_its_store_and_ends_with_it_however_that_ends(tmp_path):
    (tmp_path / "experiments").mkdir()
    command = [sys.executable, str(ROOT / "launchers/grid.py"), *WORDS, "--runs", str(tmp_path), "--status"]
    grid = subprocess.Popen([*command, "--serve", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    url = grid.stdout.readline().split()[-1]
    port = int(url.rpartition(":")[2].strip("/"))
    status = 0
    for _ in range(20):  # each waits for a minute on a machine that is busy with other things
        status, said, _ = ask(port, "/state.json")
        if status == 200:
            break
    assert (status, json.loads(said)["summary"]) == (200, "10 runs: 10 new")
    grid.kill()
    grid.wait()
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask_on(port)


def ask_state(url):
    """The state as a page asks for it; the first takes a minute on a machine that is busy with other things."""
    port = int(url.rpartition(":")[2].strip("/"))
    return json.loads(next(said for status, said, _ in iter(lambda: ask(port, "/state.json"), None) if status == 200))


def test_a_grid_that_is_killed_is_told_to_who_looked(tmp_path):
    (tmp_path / "experiments").mkdir()
    words = [*WORDS, "--runs", str(tmp_path), "--serve", "127.0.0.1:0"]
    code = f"""
import time
from launchers.command.command_line import parse_options
from launchers.core.console import SafeConsole
from launchers.live.serving import serving
with serving(parse_options({words}), {words}, SafeConsole()):
    time.sleep(600)
"""
    grid = subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    url = grid.stdout.readline().split()[-1]
    assert ask_state(url)["end"] == ""
    grid.kill()
    grid.wait()
    while not (end := ask_state(url)["end"]):
        pass
    assert end.startswith("The grid was killed: 0 of 10 done in ")
    assert end.endswith(f"To go on: python launchers/grid.py {' '.join(words)}")


def test_in_a_terminal_the_pages_stay_after_the_end_until_ctrl_c(tmp_path, finish):
    for experiment in grid_of(tmp_path).experiments:
        finish(experiment)
    command = [sys.executable, str(ROOT / "launchers/grid.py"), *WORDS, "--runs", str(tmp_path), "--serve", ":0"]
    ours, theirs = os.openpty()
    grid = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as terminal:
        said = iter(terminal.readline, "")
        url = next(line for line in said if "live pages: " in line).split()[-1]
        next(line for line in said if "stays until Ctrl-C" in line)
        state = ask_state(url)
        while not state["end"]:
            state = ask_state(url)
        assert state["end"].startswith("10 of 10 done in ")
        grid.send_signal(signal.SIGINT)
        assert grid.wait() == Exit.DONE
