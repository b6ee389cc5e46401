#!/usr/bin/env python3
"""Prints what TensorBoard reads of a folder, as JSON: scalars by tag as [step, value], texts by tag as [step, text].
Ends with status 77 where TensorBoard is not installed (tools/setup.sh tensorboard, or pip install tensorboard)."""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append("build/tensorboard")
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
print(json.dumps({
    "scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags["scalars"]},
    "texts": {tag: [[e.step, e.tensor_proto.string_val[0].decode()] for e in events.Tensors(tag)]
              for tag in tags["tensors"]},
}))
