"""Pages in a real browser, Debian's Chromium, headless: one browser and one set of pages serve all tests."""

import os
import shutil

import pytest

from leaderboards.board_files import write_leaderboard, write_pages
from leaderboards.boards.board import make_leaderboard
from leaderboards.boards.budget import estimate_cost
from leaderboards.judged_claims import judge
from leaderboards.report.suite_page import render_suite_page
from leaderboards.survey import IndexLine
from suite.papers import get_suite
from suite.spec.custom_entries import with_custom_models
from suite.spec.custom_model import CustomModel, ModelSource, hash_source
from suite.store.custom_models import record_custom_models
from suite.store.results import PROTOCOL_VERSION, Failure, Result
from suite.store.run_directory import RunDirectory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<img src=x onerror=\"document.title='stolen'\">\x1b[31m=cmd|' /C calc'!A0</script>"
CODE = "class Mine: ..."
SOURCE = ModelSource(kind="file", name="Mine", version=hash_source(CODE.encode()), code=CODE)
MINE = CustomModel(name="mine", words="mine.py:Mine", source=SOURCE)


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


@pytest.fixture(scope="session")
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
    (out / "custom.html").write_text(render_custom(tmp_path_factory.mktemp("custom")))
    patch.undo()
    return out


def render_custom(store):
    """The page of a board of three seeds with a custom model."""
    for number, experiment in enumerate(
        with_custom_models(get_suite("convit_psa"), [MINE]).profile("laptop").experiments(range(3))
    ):
        train(store, experiment, 40.0 + number % 7 + experiment.seed / 4)
    record_custom_models(store, [MINE])
    return render_suite_page(make_leaderboard(get_suite("convit_psa"), "laptop", store), {})


@pytest.fixture(scope="module")
def browser():
    """Chromium, closed with its module: two cannot be driven at once."""
    if CHROMIUM is None and os.environ.get("CI") != "true":
        pytest.skip("no Chromium: apt-get install chromium")
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
