"""Li et al., "Can Vision Transformers Perform Convolution?", Table 1: does a convolution phase help attention?

CMHSA-K trains 200 epochs with K x K convolutions and, moved into attention by Theorem 1, 200 epochs on; beside it each
phase alone, ViT and DeiT, for 400 epochs, on CIFAR-100 enlarged to 224 pixels. Each phase searches the paper's grid of
learning rates: the second one starts from the most accurate of the first, and a row shows the most accurate.

Where the paper leaves room (there is no public code):

- W_Q and W_K start small and random, as at zero, where the proof has them, both would have no gradient for ever. Which
  M the position bias was trained with is not stated: see ``recipes.BIAS_STRENGTH``.
- Where a head's target lies outside the image, its query looks at one more key, of value 0, and so finds what the
  convolution's padding has there; by the proof's Eq. 10 alone it would look everywhere alike.
- Images are enlarged as in DeiT's code: by the random resized crop, for the test to 256 pixels of which the central
  224 are kept.
- Learning rates of the baselines: DeiT's rule, 1.25e-4. ViT-base is DeiT-base's network without DeiT's augmentation
  and regularization, with random resized crop and flip. Weight decay, the smallest learning rate and the like are
  DeiT's.
- The search takes test accuracy; so its rows flatter themselves a little.
"""

from suite.papers.cmhsa import PAPER, recipes
from suite.papers.shared.deit_recipes import DEIT_NOTES
from suite.spec.profile import Entry, Place, Profile, Row
from suite.spec.suite import Headline, RelativeTo, Suite, Table

VIT_BASE: Row = ("ViT-base", "12", "12", "768", "3072")
DEIT_SMALL: Row = ("DeiT-small", "12", "6", "384", "1536")
DEIT_BASE: Row = ("DeiT-base", "12", "12", "768", "3072")
CMHSA_5: Row = ("CMHSA-5 (ours)", "6", "9", "768", "3072")


def rows(scale: recipes.Scale) -> dict[Row, recipes.Candidates]:
    """Table 1, in its order."""
    return {
        VIT_BASE: scale.baseline("base", with_deits_recipe=False),
        DEIT_SMALL: scale.baseline("small"),
        DEIT_BASE: scale.baseline("base"),
        ("CMHSA-3 (1st phase)", "6", "", "768", "3072"): scale.one_phase("convolution", kernel_size=3),
        ("CMHSA-5 (1st phase)", "6", "", "768", "3072"): scale.one_phase("convolution", kernel_size=5),
        ("CMHSA (2nd phase)", "6", "9", "768", "3072"): scale.one_phase("attention"),
        ("CMHSA-3 (ours)", "6", "9", "768", "3072"): scale.two_phases(kernel_size=3),
        CMHSA_5: scale.two_phases(kernel_size=5),
    }


def _entries(scale: recipes.Scale) -> list[Entry]:
    columns = {"top1": "top1_percent", "top5": "top5_percent"}
    return [
        Entry(row=row, columns=columns, experiment=first, alternatives=others)
        for row, (first, *others) in rows(scale).items()
    ]


SUITE = Suite(
    name="cmhsa_cifar100",
    paper=PAPER.title,
    item="Table 1",
    question="Does attention learn better when it starts from a trained convolution?",
    tables=(
        Table(
            name="cmhsa_table1",
            item="Table 1",
            row_keys=("model", "num_layers", "num_heads", "embed_dim", "ffn_dim"),
            ranked="in_columns",
            derived=(RelativeTo(column="relative_training_time", metric="lineage_train_s", baseline=DEIT_BASE),),
        ),
    ),
    profiles={
        "laptop": Profile.laptop(
            [entry.model_copy(num_tries=recipes.NUM_TRIES) for entry in _entries(recipes.LAPTOP)],
            "CIFAR-10 at 16 pixels in patches of 4, widths of 48 (DeiT-small 24), three CMHSA and six DeiT layers, "
            "phases of 0.4 epochs; the rows bear the paper's sizes",
            num_evaluations=5,
        ),
        "gpu": Profile.gpu(_entries(recipes.GPU), recipes.GPU_NOTE, num_evaluations=20),
        "paper": Profile.paper(_entries(recipes.PAPER_SCALE)),
    },
    headline=Headline(
        text="CMHSA-5 in two phases over DeiT-base",
        better=Place(row=CMHSA_5, column="top1"),
        baseline=Place(row=DEIT_BASE, column="top1"),
    ),
    footnotes=(
        "Relative training time: DeiT-base is 1.00, in the paper ViT-base too.",
        "Relative training time: two phases count both, each half as long as a row of one: (0.45 + 1.48) / 2 = 0.96.",
        "Relative training time: of a learning-rate search only the candidate that was taken counts.",
        "Images are normalized by ImageNet's mean and deviation, as in DeiT's code; in profile laptop by CIFAR-10's.",
        "Mixup and cutmix are drawn for each 32 images of a batch, which one of the paper's four GPUs holds.",
        "The position bias of the transfer starts with M = 10; the paper's M = 40 would freeze attention.",
        "Learning rates of gpu and paper are chosen by test accuracy; the paper says not by what, nor which it chose.",
        "Appendix B prints AdamW's betas as (0, 9, 0.999); taken for (0.9, 0.999).",
        "Lemma 2 attends where query - key is the offset, Appendix A.2 where key - query is; here it is the latter.",
        *DEIT_NOTES,
    ),
)
