"""Claims of Cordonnier et al. (arXiv:1911.03584) and of the slides on it.

Left out are the theorems, which tests prove, what other papers found, the hyperparameters, which the protocol holds,
and what the figures show of single heads: runs record where each one looks, but not whether nine of them make a grid.

A network of the laptop has three layers of six: claims of layers 4 to 6 are judged where there are so many.
"""

from suite.papers.cordonnier import PAPER
from suite.spec.claims import Claim, Effect, OfHeads, PaperClaims, logged, mean_of, number

_EARLY = 30 / 300
"""The share of the training by which "faster to converge" is read: the text names none."""

_QUADRATIC, _LEARNED = "SA quadratic", "SA learned"
_CONTENT, _SLIDES = "SA learned with content", "slides_figure2"
_GENERALIZED, _PRUNED = "SA quadratic generalized", "SA quadratic generalized pruned"


_WHY_OTHER = "The treatment is another: no head is degenerate by the paper's limit, so that working ones are removed."
_OTHER_HEADS = dict.fromkeys(("laptop", "desktop"), _WHY_OTHER)


def _accuracy(row: str, table: str = "") -> Effect:
    return number("cordonnier_cifar10", row, "accuracy", table)


def _on_the_way(row: str, at: float, table: str = "") -> Effect:
    return logged("cordonnier_cifar10", row, "accuracy", "top1_percent", at=at, table=table)


def _nonlocality(row: str, layer: int) -> Effect:
    return logged("cordonnier_heads", row, "mean_nonlocality", "nonlocality", layer=layer)


def _heads(row: str, layer: int, metric: str, of_heads: OfHeads, at: float = 1.0) -> Effect:
    return logged("cordonnier_heads", row, "mean_nonlocality", metric, layer=layer, of_heads=of_heads, at=at)


def _grows(row: str, layer: int, metric: str, of_heads: OfHeads) -> Effect:
    return _heads(row, layer, metric, of_heads) - _heads(row, layer, metric, of_heads, 0.0)


def _pruned_heads(layer: int) -> Effect:
    return number("cordonnier_cifar10", _PRUNED, f"layer_{layer}", "cordonnier_pruned_heads")


_ACCURACY = (
    Claim(
        name="quadratic_attention_as_good_as_resnet",
        section="Sec. 4.2, table",
        statement="Attention with the quadratic encoding does as well as ResNet18.",
        effects=(_accuracy(_QUADRATIC) - _accuracy("ResNet18"),),
        relation="equal",
        primary="2026-11-25",
    ),
    Claim(
        name="learned_attention_close_to_resnet",
        section="Sec. 4.3",
        statement="Attention with a learned encoding comes close to ResNet18.",
        effects=(_accuracy(_LEARNED) - _accuracy("ResNet18"),),
        relation="equal",
        margin=3.0,  # the paper calls its own 2.0 points close
    ),
    Claim(
        name="quadratic_attention_not_below_learned",
        section="Sec. 3",
        statement="The quadratic encoding, of three dimensions, does as well as the learned one or better: not more "
        "than a point below.",
        effects=(_accuracy(_QUADRATIC) - _accuracy(_LEARNED),),
        relation="no worse",
    ),
    Claim(
        name="any_covariance_brings_nothing",
        section="App. A.1",
        statement="Heads of any covariance do no better than isotropic ones.",
        effects=(_accuracy(_GENERALIZED) - _accuracy(_QUADRATIC),),
        relation="equal",
    ),
    Claim(
        name="resnet_converges_faster",
        section="Sec. 4.2, Fig. 2 of the slides",
        statement="ResNet18 converges faster: after a tenth of the training it is ahead of quadratic attention.",
        effects=(_on_the_way("ResNet18", _EARLY) - _on_the_way(_QUADRATIC, _EARLY),),
    ),
    Claim(
        name="more_learned_parameters_end_lower",
        section="Slides, Fig. 2",
        statement="The more parameters, the slower and lower: attention with content, too, is behind the learned "
        "encoding.",
        effects=(
            _accuracy(_LEARNED) - _accuracy(_CONTENT, _SLIDES),
            _on_the_way(_LEARNED, _EARLY) - _on_the_way(_CONTENT, _EARLY, _SLIDES),
            _on_the_way(_QUADRATIC, _EARLY) - _on_the_way(_LEARNED, _EARLY),
        ),
    ),
)

_PRUNING = (
    Claim(
        name="pruning_hurts_at_first",
        section="App. A.1",
        statement="To remove the degenerate heads costs accuracy until the rest is trained on.",
        effects=(_on_the_way(_GENERALIZED, 1.0) - _on_the_way(_PRUNED, 0.0),),
        not_testable=_OTHER_HEADS,
    ),
    Claim(
        name="pruned_attention_recovers",
        section="App. A.1, table",
        statement="Trained on, the network without its degenerate heads does as well as before.",
        effects=(_accuracy(_PRUNED) - _accuracy(_GENERALIZED),),
        relation="equal",
        not_testable=_OTHER_HEADS,
    ),
    Claim(
        name="every_layer_but_the_last_has_degenerate_heads",
        section="App. A.1",
        statement="Each of the first five layers loses heads, and so can express no 3x3 kernel any more.",
        effects=tuple(_pruned_heads(layer) for layer in range(1, 6)),
        unit="heads",
    ),
)

_HEADS = (
    Claim(
        name="third_layer_looks_farther_than_the_first_two",
        section="Sec. 4.2, Fig. 4; Sec. 4.3, Fig. 5; App. A.2",
        statement="Heads of the first two layers look nearby; those of the third, as of all deeper ones, look farther.",
        effects=tuple(
            _nonlocality(row, 3) - _nonlocality(row, near)
            for row in ("SA quadratic, 9 heads", "SA quadratic, 16 heads")
            for near in (1, 2)
        ),
        unit="patches",
    ),
    Claim(
        name="deep_layers_look_farther_than_the_first_two",
        section="Sec. 4.2, Fig. 4; Sec. 4.3, Fig. 5; App. A.2",
        statement="Heads of layers 4 to 6 look farther than those of layers 1 and 2, also where the encoding is "
        "learned.",
        effects=tuple(
            _nonlocality(row, far) - _nonlocality(row, near)
            for row in ("SA quadratic, 9 heads", "SA quadratic, 16 heads", _LEARNED)
            for far in (4, 5, 6)
            for near in (1, 2)
        ),
        unit="patches",
    ),
    Claim(
        name="centers_of_heads_move_apart",
        section="Sec. 4.2, Fig. 10; slides, Fig. 4",
        statement="Heads do not overlap: in each of the first three layers their centers end farther from each other "
        "than they start.",
        effects=tuple(
            _grows(row, layer, "centers", "distance to nearest")
            for row in ("SA quadratic, 9 heads", "SA quadratic, 16 heads")
            for layer in (1, 2, 3)
        ),
        unit="patches",
    ),
    Claim(
        name="heads_become_anisotropic",
        section="App. A.1, Fig. 7",
        statement="Where heads may have any covariance, they learn Gaussians that are not isotropic.",
        effects=tuple(_grows(_GENERALIZED, layer, "precisions", "log aspect") for layer in (1, 2, 3)),
        unit="ln(long axis / short axis)",
    ),
    Claim(
        name="deep_heads_are_less_isotropic",
        section="App. A.1, Fig. 7",
        statement="They do so especially in high layers: those of layers 4 to 6 end less isotropic than those of 1 to "
        "3.",
        effects=(
            mean_of(_heads(_GENERALIZED, layer, "precisions", "log aspect") for layer in (4, 5, 6))
            - mean_of(_heads(_GENERALIZED, layer, "precisions", "log aspect") for layer in (1, 2, 3)),
        ),
        unit="ln(long axis / short axis)",
    ),
)

CLAIMS = PaperClaims(name=PAPER.name, title=PAPER.title, claims=(*_ACCURACY, *_PRUNING, *_HEADS))
