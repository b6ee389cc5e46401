"""What a run's metrics.jsonl says of loss over time. Standard library alone; tests: tests/bench/quality_test.py."""
import json
import statistics


def read_metrics(path):
    """The lines that are whole; a run that ended in its first step has none."""
    lines = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(line))
        except ValueError:
            pass
    return lines


def curve(lines, starts):
    """Of each validation: steps, tokens, loss, seconds from the beginning of the first step, and from the start.

    `starts`: when processes of the run were started, in order. Time in which none ran does not count; a run that was
    stopped and went on pays for its second start only in the seconds from the start.
    """
    points, tokens, first, start, before, process = [], 0, 0.0, 0.0, None, -1
    for line in lines:
        now, began, own = line["wall_seconds"], line["wall_seconds"] - line["ms"] / 1000, process
        while own + 1 < len(starts) and starts[own + 1] <= began:
            own += 1
        if own != process:
            first += now - began
            start += now - starts[own]
        else:
            first += now - before
            start += now - before
        before, process = now, own
        tokens += round(line["tokens_per_second"] * line["ms"] / 1000)
        if line.get("val_loss") is not None:
            points.append({"step": line["step"], "tokens": tokens, "loss": line["val_loss"], "first": first,
                           "start": start})
    return points


def step_ms(lines):
    """The median of the second half, when the device is warm."""
    return statistics.median(line["ms"] for line in lines[len(lines) // 2:])


def reached(points, target):
    """Where the loss first is the target or less, on straight lines between validations; None: nowhere."""
    before = None
    for point in points:
        if point["loss"] <= target:
            if before is None:
                return dict(point)
            share = (before["loss"] - target) / (before["loss"] - point["loss"])
            return {key: before[key] + share * (point[key] - before[key]) for key in point}
        before = point
    return None
