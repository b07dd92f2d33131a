"""Claims of Cordonnier et al. (arXiv:1911.03584) and of the slides on it.

Left out are the theorems, which tests prove, what other papers found, the hyperparameters, which the protocol holds,
and what the figures show of single heads: runs record where each one looks, but not whether nine of them make a grid.

A network of the laptop has three layers of six: claims of layers 4 to 6 are judged where there are so many.
"""

from collections.abc import Callable
from functools import partial
from itertools import product

from suite.papers.cordonnier import PAPER
from suite.spec.claims import Effect, claim, mean_of, number, paper_claims

_EARLY = 30 / 300
"""The share of the training by which "faster to converge" is read: the text names none."""

_QUADRATIC, _LEARNED = "SA quadratic", "SA learned"
_CONTENT, _SLIDES = "SA learned with content", "slides_figure2"
_GENERALIZED, _PRUNED = "SA quadratic generalized", "SA quadratic generalized pruned"
_BY_HEADS = ("SA quadratic, 9 heads", "SA quadratic, 16 heads")

_WHY_OTHER = "The treatment is another: no head is degenerate by the paper's limit, so that working ones are removed."
_OTHER_HEADS = dict.fromkeys(("laptop", "desktop"), _WHY_OTHER)


_accuracy = partial(number, "cordonnier_cifar10", column="accuracy")
_on_the_way = partial(number, "cordonnier_cifar10", column="accuracy", metric="top1_percent", at=_EARLY)
_heads = partial(number, "cordonnier_heads", column="mean_nonlocality")
_nonlocality = partial(_heads, metric="nonlocality")
_distance = partial(_heads, metric="centers", of_heads="distance to nearest")
_aspect = partial(_heads, metric="precisions", of_heads="log aspect")


def _growth(read: Callable[..., Effect], row: str, layer: int) -> Effect:
    return read(row, layer=layer) - read(row, layer=layer, at=0.0)


_ACCURACY = {
    "quadratic_attention_as_good_as_resnet": claim(
        "Sec. 4.2, table",
        "Attention with the quadratic encoding does as well as ResNet18.",
        _accuracy(_QUADRATIC) - _accuracy("ResNet18"),
        relation="equal",
        primary="2026-11-25",
    ),
    "learned_attention_close_to_resnet": claim(
        "Sec. 4.3",
        "Attention with a learned encoding comes close to ResNet18.",
        _accuracy(_LEARNED) - _accuracy("ResNet18"),
        relation="equal",
        margin=3.0,  # the paper calls its own 2.0 points close
    ),
    "quadratic_attention_not_below_learned": claim(
        "Sec. 3",
        "The quadratic encoding, of three dimensions, does as well as the learned one or better: not more "
        "than a point below.",
        _accuracy(_QUADRATIC) - _accuracy(_LEARNED),
        relation="no worse",
    ),
    "any_covariance_brings_nothing": claim(
        "App. A.1",
        "Heads of any covariance do no better than isotropic ones.",
        _accuracy(_GENERALIZED) - _accuracy(_QUADRATIC),
        relation="equal",
    ),
    "resnet_converges_faster": claim(
        "Sec. 4.2, Fig. 2 of the slides",
        "ResNet18 converges faster: after a tenth of the training it is ahead of quadratic attention.",
        _on_the_way("ResNet18") - _on_the_way(_QUADRATIC),
    ),
    "more_learned_parameters_end_lower": claim(
        "Slides, Fig. 2",
        "The more parameters, the slower and lower: attention with content, too, is behind the learned encoding.",
        _accuracy(_LEARNED) - _accuracy(_CONTENT, table=_SLIDES),
        _on_the_way(_LEARNED) - _on_the_way(_CONTENT, table=_SLIDES),
        _on_the_way(_QUADRATIC) - _on_the_way(_LEARNED),
    ),
}

_PRUNING = {
    "pruning_hurts_at_first": claim(
        "App. A.1",
        "To remove the degenerate heads costs accuracy until the rest is trained on.",
        _on_the_way(_GENERALIZED, at=1.0) - _on_the_way(_PRUNED, at=0.0),
        not_testable=_OTHER_HEADS,
    ),
    "pruned_attention_recovers": claim(
        "App. A.1, table",
        "Trained on, the network without its degenerate heads does as well as before.",
        _accuracy(_PRUNED) - _accuracy(_GENERALIZED),
        relation="equal",
        not_testable=_OTHER_HEADS,
    ),
    "every_layer_but_the_last_has_degenerate_heads": claim(
        "App. A.1",
        "Each of the first five layers loses heads, and so can express no 3x3 kernel any more.",
        *(number("cordonnier_cifar10", _PRUNED, f"layer_{layer}", "cordonnier_pruned_heads") for layer in range(1, 6)),
        unit="heads",
    ),
}

_HEADS = {
    "third_layer_looks_farther_than_the_first_two": claim(
        "Sec. 4.2, Fig. 4; Sec. 4.3, Fig. 5; App. A.2",
        "Heads of the first two layers look nearby; those of the third, as of all deeper ones, look farther.",
        *(_nonlocality(row, layer=3) - _nonlocality(row, layer=near) for row in _BY_HEADS for near in (1, 2)),
        unit="patches",
    ),
    "deep_layers_look_farther_than_the_first_two": claim(
        "Sec. 4.2, Fig. 4; Sec. 4.3, Fig. 5; App. A.2",
        "Heads of layers 4 to 6 look farther than those of layers 1 and 2, also where the encoding is learned.",
        *(
            _nonlocality(row, layer=far) - _nonlocality(row, layer=near)
            for row, far, near in product((*_BY_HEADS, _LEARNED), (4, 5, 6), (1, 2))
        ),
        unit="patches",
    ),
    "centers_of_heads_move_apart": claim(
        "Sec. 4.2, Fig. 10; slides, Fig. 4",
        "Heads do not overlap: in each of the first three layers their centers end farther from each other "
        "than they start.",
        *(_growth(_distance, row, layer) for row in _BY_HEADS for layer in (1, 2, 3)),
        unit="patches",
    ),
    "heads_become_anisotropic": claim(
        "App. A.1, Fig. 7",
        "Where heads may have any covariance, they learn Gaussians that are not isotropic.",
        *(_growth(_aspect, _GENERALIZED, layer) for layer in (1, 2, 3)),
        unit="ln(long axis / short axis)",
    ),
    "deep_heads_are_less_isotropic": claim(
        "App. A.1, Fig. 7",
        "They do so especially in high layers: those of layers 4 to 6 end less isotropic than those of 1 to 3.",
        mean_of(_aspect(_GENERALIZED, layer=layer) for layer in (4, 5, 6))
        - mean_of(_aspect(_GENERALIZED, layer=layer) for layer in (1, 2, 3)),
        unit="ln(long axis / short axis)",
    ),
}

CLAIMS = paper_claims(PAPER, _ACCURACY, _PRUNING, _HEADS)
