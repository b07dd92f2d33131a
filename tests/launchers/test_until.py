from types import SimpleNamespace

import pytest
from rich.console import Console
from scipy import stats

from launchers.command.command_line import parse_options
from launchers.command.grid_request import GridRequest
from launchers.command.until_decided import train_until
from suite.base.errors import SpecError
from suite.papers import get_suite
from suite.store.results import Result
from suite.store.run_directory import RunDirectory

SUITE = get_suite("init_datasets")
GROUPS = [
    SUITE.find_entry(SUITE.profile("laptop"), place) for place in (SUITE.headline.better, SUITE.headline.baseline)
]
SCATTER = [0.0, 0.9, -0.8, 0.3, -0.4, 0.1, 0.6, -0.5, 0.2, -0.2, 0.4, -0.3]  # of the first configuration, by seed


@pytest.fixture
def trained(tmp_path):
    """A store, and a training that leaves known accuracies in it and remembers what it was asked for."""
    asked = []

    def train(options):
        asked.append(len(options.seeds))
        assert options.until is None
        for shift, entry in zip((4.0, 0.0), GROUPS, strict=True):
            for seed in options.seeds:
                experiment = entry.experiment.with_seed(seed)
                run = RunDirectory.of(tmp_path, experiment)
                if not run.path.exists():
                    run.create(experiment)
                    top1 = 50 + shift + SCATTER[seed] * (shift > 0)
                    run.write_result(Result(
                        experiment=experiment, top1_percent=top1, top5_percent=80, test_loss=1, best_top1_percent=top1,
                        num_parameters=1, num_train_images=320, num_test_images=10_000,
                        num_steps=experiment.num_steps(320),
                        images_seen=experiment.num_steps(320) * experiment.recipe.batch_size,
                        train_s=1, images_per_s=1920, device="cpu", num_ranks=1, num_attempts=1, commit="0" * 40,
                        finished_at="2000-01-01", protocol_version=2,
                    ))  # fmt: skip
        return 0

    def until(*arguments):
        given = ["--suite", SUITE.name, "--runs", str(tmp_path), *arguments]
        return train_until(parse_options(given), train, Console(width=200))

    return SimpleNamespace(asked=asked, until=until, train=train)


def half_width(num_seeds):
    """Of the widened interval, by scipy's paired test."""
    reach = stats.ttest_rel(SCATTER[:num_seeds], [0.0] * num_seeds).confidence_interval()
    return 1.15 * (reach.high - reach.low) / 2


def test_five_seeds_come_first_and_one_more_each_until_the_width_is_reached(trained, capsys):
    goal = half_width(8) + 1e-6
    expected = next(n for n in range(5, 12) if half_width(n) <= goal)
    assert trained.until("--seeds", f"until={goal}") == 0
    assert trained.asked == list(range(5, expected + 1))
    assert f"{expected} seeds: +4.02 ± {half_width(expected):.2f} points" in capsys.readouterr().out


def test_an_interval_that_excludes_zero_does_not_stop_it(trained, capsys):
    trained.until("--seeds", "until=0.01", "--max-seeds", "7")
    assert half_width(5) < 4
    assert trained.asked == [5, 6, 7]
    assert "not reached with --max-seeds" in capsys.readouterr().out


def test_the_same_command_goes_on_where_the_last_one_ended(trained):
    trained.until("--seeds", "until=0.01", "--max-seeds", "7")
    trained.asked.clear()
    trained.until("--seeds", "until=0.01", "--max-seeds", "9")
    assert trained.asked == [8, 9]


def test_once_the_width_is_reached_the_same_command_tells_the_same(trained, capsys):
    told = []
    for _ in range(2):
        trained.until("--seeds", f"until={half_width(8) + 1e-6}")
        told.append(capsys.readouterr().out.splitlines()[-1])
    assert told[0] == told[1]


def test_a_store_with_later_seeds_is_refused_before_anything_is_trained(trained):
    trained.train(SimpleNamespace(seeds=range(6, 12), until=None))
    with pytest.raises(SpecError, match="has runs of seed 11; expected seeds from 0 to 6"):
        trained.until("--seeds", "until=0.01")
    assert trained.asked == [6]


def test_a_look_shows_as_many_seeds_as_were_begun(trained, tmp_path):
    given = ["--suite", SUITE.name, "--runs", str(tmp_path), "--seeds", "until=0.01", "--status"]
    for num_seeds, shown in ((2, 5), (7, 7)):
        trained.train(SimpleNamespace(seeds=range(num_seeds), until=None))
        assert {one.seed for one in GridRequest.of(parse_options(given)).experiments} == set(range(shown))


def test_detached_it_submits_the_seeds_that_come_next_and_returns(trained):
    for _ in range(2):
        trained.until("--seeds", "until=0.01", "--cluster", "slurm", "--detach")
    assert trained.asked == [5, 6]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "until=0.5", "--only", "model=vit_t"], "all configurations"),
        (["--seeds", "until=0.5", "--max-seeds", "3"], "first looks at 5"),
        (["--seeds", "8", "--max-seeds", "9"], "would do nothing here"),
    ],
)
def test_what_cannot_be_decided_is_refused(trained, arguments, said):
    with pytest.raises(SpecError, match=said):
        trained.until(*arguments)


@pytest.mark.parametrize("seeds", ["until=0", "until=x", "until=inf", "until=", "about=3", "0", "-1"])
def test_a_width_is_a_number_of_points(seeds, capsys):
    with pytest.raises(SystemExit):
        parse_options(["--suite", SUITE.name, "--seeds", seeds])
    assert "expected a" in capsys.readouterr().err
