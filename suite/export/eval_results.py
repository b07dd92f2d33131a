"""A result -> ``.eval_results/<image set>.yaml``, from which the Hugging Face hub lists a model beside a benchmark.

No torch.
"""

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from imagesets.prepared import find_info
from suite.store.results import Result

EVAL_RESULTS = ".eval_results"  # the hub's name of the folder


def render_eval_results(result: Result) -> str:
    """Write the top-1 accuracy as the hub's YAML; "" for images that the hub does not have, or that were changed."""
    experiment = result.experiment
    parquet = find_info(experiment.dataset).parquet
    if parquet is None or experiment.shuffle_patch_size:
        return ""
    entry = EvalResultEntry(
        dataset_id=parquet.hub_id,
        dataset_revision=parquet.revision,
        task_id="default",
        value=round(result.top1_percent, 4),
        date=result.finished_at,
        notes=f"top-1 accuracy in percent on {result.num_test_images:,} test images after training on "
        f"{result.num_train_images:,}, seed {experiment.seed}, protocol {result.protocol_version}",
    )
    return str(yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False))
