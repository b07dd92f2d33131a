"""Claims of "ConViT: Improving Vision Transformers with Soft Convolutional Inductive Biases" (arXiv:2103.10697).

Where a sentence gives relative gains, the claim is in points of accuracy, which say the same here. Where the paper
only draws, an effect has no size, but for the gates of one ConViT-S that Fig. 17 prints: here their mean over heads.
The text says "[f]" and "[e]" of rows g and f of Table 3, which are meant here. It gives no epoch for "early": that is
read as each claim says.

The laptop's networks have five layers, three of a ConViT's GPSA: a claim that names a deeper layer is judged where
there is one. What the laptop can show of it stands beside it as a claim of its first layers, or of all layers' mean.
Its trainings are too short to move attention or gates, so that claims of these are not testable there.

Left out: hyperparameters, which the protocol holds, and numbers that the paper quotes from others.
"""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from suite.papers.convit import PAPER, recipes
from suite.papers.convit.convit_ablation import ROWS
from suite.papers.convit.sample_efficiency import FRACTIONS
from suite.spec.claims import Effect, above, below, claim, mean_of, number, paper_claims, scaled, trend

_EPOCHS = 300
_ANOTHER_SET = {"laptop": "The data set is another: CIFAR-10, not CIFAR-100."}
_UNMOVED = {"laptop": "Training moves no layer by more than 0.06 patches: the numbers are those of the start."}
_SAME_GATES = {"laptop": "Training moves no mean gate by more than 0.02 of 0.731: the numbers are those of the start."}
_NOTHING_TO_MASK = {"laptop": "So short a training learns too little of position to lose any by a mask."}


# -- Section 3: accuracy


def _imagenet(size: str, family: recipes.Family) -> Effect:
    return number("convit_imagenet", recipes.row_of_table1(size, family), "top1")


def _gain(size: str) -> Effect:
    return _imagenet(size, "convit") - _imagenet(size, "deit")


def _on(percent: str, family: str) -> Effect:
    """The S model on so many percent of each class."""
    return number("sample_efficiency", percent, f"{family}_top1")


_RISE = mean_of(_on("100", family) - _on("5", family) for family in recipes.TITLES)
"""The positive control of whatever speaks of scarce images: accuracy rises with the share, by the mean of both."""


def _gain_in(suite: str, row: str, metric: str = "top1") -> Effect:
    """Of ConViT over DeiT in a row."""
    return number(suite, row, f"convit_{metric}") - number(suite, row, f"deit_{metric}")


_gain_on = partial(_gain_in, "sample_efficiency")
_gain_on_cifar100 = partial(_gain_in, "convit_cifar100", metric="best_top1")
_gain_on_images = partial(_gain_in, "convit_shuffled")
_table4 = partial(number, "convit_distillation")
_TAUGHT, _UNTAUGHT = "Hard distillation", "No distillation"


def _by_distillation(model: str) -> Effect:
    return _table4(_TAUGHT, model) - _table4(_UNTAUGHT, model)


_ACCURACY = {
    "convit_over_deit_at_each_size": claim(
        "Sec. 3, Table 1, Fig. 2b",
        "ConViT is better than DeiT of the same size, also where both have as many heads.",
        *(_gain(size) for size in recipes.SIZES),
    ),
    "convit_gains_more_the_larger": claim(
        "App. C, Fig. 11b",
        "Among the models with 64 dimensions a head, ConViT gains more the larger they are.",
        _gain("S+") - _gain("Ti+"),
        _gain("B+") - _gain("S+"),
    ),
    "convit_is_stable_where_deit_is_not": claim(
        "Sec. 3, Table 1",
        "By the recipe of the plus sizes DeiT-B+ falls behind the smaller DeiT-S+, ConViT-B+ does not.",
        _imagenet("S+", "deit") - _imagenet("B+", "deit"),
        _imagenet("B+", "convit") - _imagenet("S+", "convit"),
    ),
    "convit_s_plus_over_deit_b": claim(
        "Sec. 3, Table 1",
        "ConViT-S+ is better than DeiT-B, which has nearly twice its parameters.",
        _imagenet("S+", "convit") - _imagenet("B", "deit"),
    ),
    "convit_over_deit_at_each_fraction": claim(
        "Sec. 3, Table 2, Fig. 2a",
        "ConViT-S is better than DeiT-S on each share of the images, from 5 to 100 %.",
        *(_gain_on(percent) for percent in FRACTIONS),
    ),
    "convit_gains_over_all_shares": claim(
        "Abstract, Sec. 3, Table 2, Fig. 2a",
        "ConViT-S is better than DeiT-S, by the mean over the shares of the images.",
        mean_of(map(_gain_on, FRACTIONS)),
        primary="2026-11-25",
    ),
    "convit_gain_falls_with_the_share": claim(
        "Abstract, Sec. 3, Table 2, Fig. 2a",
        "The scarcer the images, the more ConViT-S gains over DeiT-S: by the slope of the gain over all "
        "shares, for each time that the images are e times fewer, in points and in log odds.",
        *trend({share: _gain_on(percent) for percent, share in FRACTIONS.items()}),
        control=_RISE,
        primary="2026-11-25",
        after="convit_gains_over_all_shares",
    ),
    "accuracy_grows_with_the_share": claim(
        "Sec. 3, Table 2, Fig. 2a",
        "DeiT-S and ConViT-S are more accurate on each larger share of the images.",
        *(_on(more, family) - _on(less, family) for family in recipes.TITLES for less, more in pairwise(FRACTIONS)),
    ),
    "convit_gains_most_where_data_are_scarce": claim(
        "Sec. 3, Table 2, Fig. 2a; App. C, Fig. 11c",
        "On 5 and on 10 % of the images ConViT-S gains more over DeiT-S than on all of them.",
        *(_gain_on(percent) - _gain_on("100") for percent in ("5", "10")),
        control=_RISE,
    ),
    "convit_over_deit_on_cifar100": claim(
        "App. C, Fig. 11a",
        "On CIFAR-100, too, ConViT is better at each plus size, by the best accuracy of each, and more so at "
        "the largest than at the smallest.",
        *(_gain_on_cifar100(size) for size in recipes.PLUS_SIZES),
        _gain_on_cifar100("B+") - _gain_on_cifar100("Ti+"),
        not_testable=_ANOTHER_SET,
    ),
    "distillation_helps": claim(
        "Sec. 3, App. B, Table 4",
        "A convolutional teacher helps DeiT-S, DeiT-B and ConViT-S+.",
        *(_by_distillation(model) for model in ("deit_s", "deit_b", "convit_s_plus")),
    ),
    "distillation_helps_convit_less": claim(
        "App. B, Table 4",
        "The teacher helps ConViT-S+ less than the DeiTs: its prior is there already.",
        *(_by_distillation(model) - _by_distillation("convit_s_plus") for model in ("deit_s", "deit_b")),
    ),
    "distilled_convit_s_plus_as_good_as_deit_b": claim(
        "Sec. 3, Table 4",
        "Distilled, ConViT-S+ is as good as a distilled DeiT-B of nearly twice its parameters.",
        _table4(_TAUGHT, "convit_s_plus") - _table4(_TAUGHT, "deit_b"),
        relation="equal",
    ),
    "distillation_reverses_the_order": claim(
        "Sec. 3, Table 4",
        "ConViT-S+ is better than DeiT-B by itself; distilled, DeiT-B is better.",
        _table4(_UNTAUGHT, "convit_s_plus") - _table4(_UNTAUGHT, "deit_b"),
        _table4(_TAUGHT, "deit_b") - _table4(_TAUGHT, "convit_s_plus"),
    ),
}


# -- Section 4: locality

_FIRST_EPOCHS = 10 / _EPOCHS
"""The share of the training by which "during the first few epochs" is read."""

_POSITIONAL_LAYERS = {"Ti": 4, "S": 5, "B": 6}
"""So many first layers still attend to position at the end (Sec. 4, App. D)."""

_GPSA_LAYERS = 10
_GATES_OF_FIG_17 = {1: 0.183, 4: 0.416, 7: 0.093, 10: 0.0}
"""Mean over the nine heads of one ConViT-S, by layer."""

_HARDLY = 0.1
"""A mean gate below which position counts as ignored: Fig. 17 has 0.093 in layer 7, where the text says 0."""


_nonlocality = partial(number, "convit_probes", column="mean_nonlocality", metric="nonlocality")
_mean_nonlocality = partial(number, "convit_probes", column="mean_nonlocality")
_mean_gate = partial(number, "convit_probes", column="mean_gate")
_claim_of_locality = partial(claim, unit="patches")
_claim_of_moves = partial(_claim_of_locality, not_testable=_UNMOVED)
_claim_of_gates = partial(claim, unit="gate")


def _escape(model: str, layer: int, since: float = 0.0) -> Effect:
    """By how much a layer's nonlocality grows to the end of the training."""
    return _nonlocality(model, layer=layer) - _nonlocality(model, layer=layer, at=since)


def _approach(model: str, layer: int) -> Effect:
    """By how much a layer's nonlocality falls in the first epochs."""
    return _nonlocality(model, layer=layer, at=0.0) - _nonlocality(model, layer=layer, at=_FIRST_EPOCHS)


def _gate(size: str, layer: int) -> Effect:
    effect = number("convit_probes", f"ConViT-{size}", "mean_gate", metric="gates", layer=layer)
    printed = _GATES_OF_FIG_17.get(layer) if size == "S" else None
    return effect.model_copy(paper=printed)


def _deep_gates(size: str) -> Iterable[Effect]:
    return (_gate(size, layer) for layer in range(1 + _POSITIONAL_LAYERS[size], 1 + _GPSA_LAYERS))


def _first_layers_of_student(row: str) -> Effect:
    read = partial(number, "convit_distillation", row, "deit_s", metric="nonlocality")
    return mean_of(read(layer=layer) for layer in range(1, 5))


_NONLOCALITY = {
    "deits_first_layers_become_local": _claim_of_moves(
        "Sec. 4, Fig. 5",
        "In the first epochs (of 300: ten) attention of DeiT-S becomes more local; of its first four layers.",
        *(_approach("DeiT-S", layer) for layer in range(1, 5)),
    ),
    "deits_deeper_layers_become_local_and_climb_back": _claim_of_locality(
        "Sec. 4, Fig. 5",
        "So do the layers from the fifth on; then the upper ones, taken for the last three, grow less local.",
        *(_approach("DeiT-S", layer) for layer in range(5, 13)),
        *(_escape("DeiT-S", layer, _FIRST_EPOCHS) for layer in (10, 11, 12)),
    ),
    "deits_nonlocality_grows_with_depth": _claim_of_locality(
        "Sec. 4, Fig. 5",
        "At the end each layer of DeiT-S is less local than the one before it.",
        *(_nonlocality("DeiT-S", layer=layer + 1) - _nonlocality("DeiT-S", layer=layer) for layer in range(1, 12)),
    ),
    "convits_first_layers_escape_locality": _claim_of_moves(
        "Sec. 4, Fig. 5",
        "Nonlocality of ConViT-S's GPSA layers grows over the training; of its first three.",
        *(_escape("ConViT-S", layer) for layer in range(1, 4)),
    ),
    "convits_deeper_layers_escape_locality": _claim_of_locality(
        "Sec. 4, Fig. 5",
        "So it does in the GPSA layers from the fourth on; the second layer ends more local than the first "
        "and the last of them.",
        *(_escape("ConViT-S", layer) for layer in range(4, 1 + _GPSA_LAYERS)),
        *(_nonlocality("ConViT-S", layer=layer) - _nonlocality("ConViT-S", layer=2) for layer in (1, _GPSA_LAYERS)),
    ),
    "convit_stays_more_local_than_deit": _claim_of_moves(
        "Sec. 4, Fig. 5; App. D, Fig. 13",
        "At the end attention of ConViT is still more local than that of DeiT, at each size.",
        *(_mean_nonlocality(f"DeiT-{size}") - _mean_nonlocality(f"ConViT-{size}") for size in _POSITIONAL_LAYERS),
    ),
    "larger_models_less_local": _claim_of_moves(
        "App. D, Fig. 13",
        "The larger the model, the less local its attention ends: from Ti over S to B, in DeiT and in ConViT.",
        *(
            _mean_nonlocality(f"{model}-{larger}") - _mean_nonlocality(f"{model}-{smaller}")
            for model in ("DeiT", "ConViT")
            for smaller, larger in (("Ti", "S"), ("S", "B"))
        ),
    ),
    "first_layers_of_large_models_less_local": _claim_of_moves(
        "App. D, Fig. 13",
        "The first layers of DeiT-B and ConViT-B end less local than those of the Ti models.",
        *(_nonlocality(f"{model}-B", layer=1) - _nonlocality(f"{model}-Ti", layer=1) for model in ("DeiT", "ConViT")),
    ),
    "distillation_makes_deit_more_local": _claim_of_moves(
        "Sec. 4, App. B, Fig. 10",
        "Attention of a distilled DeiT-S ends more local; by the mean of the first four layers, of which "
        "the laptop's network has five in all.",
        _first_layers_of_student(_UNTAUGHT) - _first_layers_of_student(_TAUGHT),
    ),
}

_GATES = {
    "gates_fall": _claim_of_gates(
        "Sec. 4, Fig. 6; App. D, Fig. 14",
        "From 0.731, where they start, gates fall over the training: attention turns to content, at each size.",
        *(below(_mean_gate(f"ConViT-{size}"), 0.7311) for size in _POSITIONAL_LAYERS),
        not_testable=_SAME_GATES,
    ),
    "gates_of_every_layer_fall": _claim_of_gates(
        "Sec. 4, Fig. 6",
        "They fall in each of ConViT-S's GPSA layers, by the mean over its heads.",
        *(below(_gate("S", layer), 0.7311) for layer in range(1, 1 + _GPSA_LAYERS)),
    ),
    "gates_of_s_go_to_zero_from_layer_6": _claim_of_gates(
        "Sec. 4, Fig. 6",
        "From layer 6 on the gates of ConViT-S end near 0: position is hardly attended to.",
        *_deep_gates("S"),
        relation="equal",
        margin=_HARDLY,
    ),
    "gates_of_ti_and_b_go_to_zero_in_deep_layers": _claim_of_gates(
        "Sec. 4, App. D, Fig. 14",
        "So they do from layer 5 on in ConViT-Ti, and from layer 7 on in ConViT-B.",
        *_deep_gates("Ti"),
        *_deep_gates("B"),
        relation="equal",
        margin=_HARDLY,
    ),
    "first_layers_keep_looking_at_position": _claim_of_gates(
        "Sec. 4, Fig. 6; App. D, Fig. 14",
        "Position is still attended to in the first 4 layers of ConViT-Ti, 5 of S and 6 of B, by the mean gate.",
        *(
            above(_gate(size, layer), _HARDLY)
            for size, num_layers in _POSITIONAL_LAYERS.items()
            for layer in range(1, 1 + num_layers)
        ),
    ),
    "larger_convits_look_more_at_position": _claim_of_gates(
        "Sec. 4, App. D, Fig. 14",
        "The larger the model, the more of it looks at position; by the mean of all gates.",
        _mean_gate("ConViT-S") - _mean_gate("ConViT-Ti"),
        _mean_gate("ConViT-B") - _mean_gate("ConViT-S"),
        not_testable=_SAME_GATES,
    ),
}


# -- Section 4 and the appendices: what helps


_strength = partial(number, "convit_locality", column="top1")  # of so many GPSA layers, and by their strength
_after_20_epochs = partial(number, "convit_locality", column="top1", metric="top1_percent", at=20 / _EPOCHS)
_NINE_LAYERS, _NO_LAYERS = ("9", "1"), ("0", "1")

_LOCALITY = {
    "more_convolutional_is_better": claim(
        "Sec. 4, Fig. 8 left",
        "Accuracy grows with the locality strength, .01 to 1, and with the number of GPSA layers, 0 to 9.",
        *(_strength(("9", more)) - _strength(("9", less)) for less, more in (("0.01", "0.1"), ("0.1", "1"))),
        *(_strength((more, "1")) - _strength((less, "1")) for less, more in (("0", "3"), ("3", "6"), ("6", "9"))),
    ),
    "nearly_double_at_20_epochs": claim(
        "Sec. 4, Fig. 8 right",
        "After 20 of 300 epochs nine GPSA layers nearly double the accuracy; taken for at least one and a "
        "half times that without.",
        _after_20_epochs(_NINE_LAYERS) - scaled(_after_20_epochs(_NO_LAYERS), 1.5),
    ),
    "gpsa_helps_most_early": claim(
        "Sec. 4, Fig. 8 right, Fig. 12 left",
        "What nine GPSA layers add is more after 20 of 300 epochs than at the end.",
        _after_20_epochs(_NINE_LAYERS)
        - _after_20_epochs(_NO_LAYERS)
        - (_strength(_NINE_LAYERS) - _strength(_NO_LAYERS)),
    ),
}

_ROWS = {row[0][0]: row for row in ROWS.values()}
"""Table 3's rows by their letters."""


def _table3(better: str, baseline: str, column: str = "full_data_top1") -> Effect:
    """Between two rows of Table 3, on all images."""
    return number("convit_ablation", _ROWS[better], column) - number("convit_ablation", _ROWS[baseline], column)


_tenth = partial(_table3, column="ten_percent_data_top1")
_claim_of_table_3 = partial(claim, "Sec. 4, Table 3")

_ABLATION = {
    "gpsas_parts_help_on_all_images": _claim_of_table_3(
        "On all images GPSA layers without gates or convolutional start bring 2.5 points over DeiT; that "
        "start adds a little (2.9), and gates a little more to it (3.1).",
        *(_table3(better, baseline) for better, baseline in ("de", "bd", "ab")),
    ),
    "gates_alone_are_no_help": _claim_of_table_3(
        "On all images gates without the convolutional start make no difference.",
        _table3("c", "d"),
        relation="equal",
    ),
    "gpsas_parts_help_on_few_images": _claim_of_table_3(
        "On a tenth of the images GPSA alone brings 6.8 points, gates 2.3 more, the convolutional start 2.8 "
        "and both 5.1, more than either.",
        *(_tenth(better, baseline) for better, baseline in ("de", "cd", "bd", "ad", "ab", "ac")),
    ),
    "gates_and_start_matter_more_on_few_images": _claim_of_table_3(
        "What gates, the convolutional start and both add is more on a tenth of the images than on all.",
        *(_tenth(row, "d") - _table3(row, "d") for row in "cba"),
    ),
    "frozen_random_attention_is_far_worse": _claim_of_table_3(
        "On all images GPSA layers that are frozen at random weights lose 5.4 points to DeiT.",
        _table3("e", "g"),
    ),
    "frozen_convolutions_almost_equal_deit": _claim_of_table_3(
        "On all images GPSA layers that are frozen at random convolutions nearly equal DeiT, 0.5 points below.",
        _table3("f", "e"),
        relation="equal",
    ),
    "frozen_convolutions_over_deit_on_few_images": _claim_of_table_3(
        "On a tenth of the images the frozen convolutions are 6.5 points better than DeiT.",
        _tenth("f", "e"),
    ),
}


_figure9 = partial(number, "convit_psa", column="top1", metric="top1_percent")
_PSA, _DEIT_B = "ConViT-B, vanilla PSA", "DeiT-B"
_EARLY = 30 / _EPOCHS

_WITHOUT_GATES = {
    "vanilla_psa_leads_early_and_falls_behind": claim(
        "Sec. 3, App. A, Fig. 9",
        "Without gates the convolutional start leads DeiT-B early, after a tenth of the epochs, and ends below.",
        _figure9(_PSA, at=_EARLY) - _figure9(_DEIT_B, at=_EARLY),
        _figure9(_DEIT_B) - _figure9(_PSA),
    ),
    "vanilla_psa_stays_convolutional": _claim_of_moves(
        "App. A",
        "Without gates attention stays where it started: it ends more local than that of DeiT-B.",
        number("convit_psa", _DEIT_B, "mean_nonlocality") - number("convit_psa", _PSA, "mean_nonlocality"),
    ),
}


def _lost(model: str) -> Effect:
    """By masking the position embedding."""
    return number("convit_masking", model, "no_mask") - number("convit_masking", model, "mask_pos_embed")


_masked = partial(number, "convit_masking", table="convit_table6")
_claim_of_masks = partial(claim, not_testable=_NOTHING_TO_MASK)

_MASKING = {
    "deit_needs_its_position_embedding_more": _claim_of_masks(
        "Sec. 3, App. F, Table 5",
        "Without position embedding at test time DeiT-Ti loses much, ConViT-Ti far less.",
        _lost("DeiT-Ti"),
        _lost("DeiT-Ti") - _lost("ConViT-Ti"),
    ),
    "first_layers_need_position_as_much_as_content": _claim_of_masks(
        "App. F, Table 6",
        "In the first three layers it costs alike to mask either.",
        _masked("3", "mask_position") - _masked("3", "mask_content"),
        relation="equal",
        margin=2.0,  # the paper calls its own 1.2 points alike
    ),
    "position_is_needed_first_and_content_everywhere": _claim_of_masks(
        "App. F, Table 6",
        "In the first three layers masking content costs accuracy, and so does masking position; in all GPSA "
        "layers masking content is ruinous, masking position is not.",
        *(_masked("3", "no_mask") - _masked("3", f"mask_{part}") for part in ("content", "position")),
        _masked("10", "mask_position") - _masked("10", "mask_content"),
    ),
}

# -- a control of ours


_CONTROL = {
    "gain_falls_where_patches_are_permuted": claim(
        "None: a control of ours",
        "ConViT gains less over DeiT on images whose patches are permuted than on images as they are.",
        _gain_on_images("as they are") - _gain_on_images("patches permuted"),
    ),
    "gain_stays_where_pixels_are_permuted_within_patches": claim(
        "None: a control of ours",
        "ConViT gains as much over DeiT on images whose pixels are permuted within each patch.",
        _gain_on_images("pixels permuted within patches") - _gain_on_images("as they are"),
        relation="equal",
        margin=1.5,
    ),
}


CLAIMS = paper_claims(PAPER, _ACCURACY, _NONLOCALITY, _GATES, _LOCALITY, _ABLATION, _WITHOUT_GATES, _MASKING, _CONTROL)
