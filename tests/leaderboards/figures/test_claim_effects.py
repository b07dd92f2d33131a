import dataclasses

import pytest

from leaderboards.board_files import write_effects
from leaderboards.figures import draw_claims
from leaderboards.figures.claim_effects import count_others, draw_effects, standardize
from leaderboards.judged_claims import JudgedClaim
from leaderboards.significance.estimates import single
from leaderboards.significance.verdicts import Measured
from suite.spec.claims import Claim, PaperClaims, number

CLAIM = Claim(
    name="convit_helps_deits",
    section="Sec. 3",
    statement="ConViT-S helps DeiT.",
    effects=(number("own", "convit", "a"),),
)
PAPER = PaperClaims(name="own", title="Our paper", claims=(CLAIM,))


def judged(verdict="same direction", paper=3.0, seeds=(1.0, 2.0, 3.0, 4.0, 5.0), **measured):
    effect = Measured(single(dict(enumerate(seeds))), paper, **measured)
    return JudgedClaim(CLAIM.name, [effect], verdict=verdict, paper=PAPER, claim=CLAIM, scale="laptop")


def texts(canvas):
    return [text.get_text() for text in canvas.axes[0].texts]


def test_effects_are_divided_by_the_deviation_of_one_seed():
    row = standardize(judged(relation="no worse", margin=0.5))
    sd = 2.5**0.5
    assert (row.ours, row.paper) == (pytest.approx(3.0 / sd), pytest.approx(3.0 / sd))
    assert sum(row.interval) / 2 == pytest.approx(row.ours)
    assert row.margin == (pytest.approx(-0.5 / sd), float("inf"))


def test_what_lies_beyond_the_axis_is_an_arrow_with_its_number():
    assert texts(draw_effects([judged()])) == ["Our paper"]
    far = judged(seeds=(101.0, 102.0, 103.0, 104.0, 105.0), paper=-50.0)
    assert texts(draw_effects([far])) == ["Our paper", "+65.1", "-31.6"]


def test_claims_that_are_not_drawn_are_counted():
    claims = [judged(), *[judged("not testable here")] * 2, judged("unresolved", seeds=(1.0,) * 5)]
    assert count_others(claims) == "Not drawn: 2 not testable here, 1 the same in all seeds (of 4 claims)."
    assert count_others(claims) in draw_effects(claims).axes[0].get_xlabel()
    assert draw_effects(claims[1:]) is None


def test_primary_claims_come_first_under_names_that_are_spelt_as_in_the_statements():
    named = CLAIM.model_copy(update={"name": "first", "primary": "2026-11-25"})
    primary = dataclasses.replace(judged(), claim=named, is_primary=True)
    labels = draw_effects([judged(), primary]).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["First", "ConViT helps DeiTs"]


def test_the_same_claims_give_the_same_bytes_and_a_scale_without_effects_leaves_no_file(tmp_path):
    assert draw_claims([judged()]) == draw_claims([judged()])
    write_effects([judged()], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["effects.laptop.png", "effects.laptop.svg"]
    write_effects([judged("no runs")], tmp_path)
    assert not list(tmp_path.iterdir())
