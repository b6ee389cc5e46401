"""The table of recipes. Standard library alone; tests: tests/bench/quality_test.py."""
import math
import statistics

from curve import reached

HEADS = ["recipe", "seeds", "loss", "+-", "- reference", "+-", "ms", "steps", "tokens M", "seconds", "from start",
         "% steps", "% seconds", "% from start"]


def comparable(runs, asked):
    """Those whose identity has the asked settings, and of versions of a recipe the one that was run last."""
    alike = [run for run in runs if asked.items() <= run["identity"].items()]
    texts = {run["row"]: run["identity"]["recipe"] for run in alike}
    return [run for run in alike if run["identity"]["recipe"] == texts[run["row"]]]


def spread(values):
    """Standard deviation of the seeds; of one there is none."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


def means(points):
    return {key: statistics.mean(point[key] for point in points) for key in ("step", "tokens", "first", "start")}


def spreads(points):
    return {key: spread([point[key] for point in points]) for key in ("step", "first", "start")}


def target_of(runs, reference):
    """The mean of the losses that the reference's seeds end with; None without such runs."""
    ends = [run["curve"][-1]["loss"] for run in runs if run["row"] == reference and not run["diverged"]]
    return statistics.mean(ends) if ends else None


def difference(runs, reference_runs):
    """Mean over the seeds that both have of the loss less the reference's, and its standard error."""
    theirs = {run["seed"]: run["curve"][-1]["loss"] for run in reference_runs}
    pairs = [run["curve"][-1]["loss"] - theirs[run["seed"]] for run in runs if run["seed"] in theirs]
    return (statistics.mean(pairs), spread(pairs) / math.sqrt(len(pairs))) if pairs else (math.nan, math.nan)


def row(name, runs, reference_runs, target):
    """One line: the end of its runs; then, where all seeds reach the target, what that took, in the mean."""
    good = [run for run in runs if not run["diverged"]]
    out = {"recipe": name, "seeds": len(runs), "diverged": len(runs) - len(good)}
    if not good:
        return out
    ends = [run["curve"][-1]["loss"] for run in good]
    out |= {"loss": statistics.mean(ends), "spread": spread(ends), "ms": statistics.median(run["ms"] for run in good),
            "end": means([run["curve"][-1] for run in good])}
    out["difference"], out["error"] = difference(good, reference_runs)
    hits = [hit for hit in (reached(run["curve"], target) for run in good) if hit] if target is not None else []
    out["hits"] = len(hits)
    if len(hits) == len(runs):
        out["reached"], out["reached_spread"] = means(hits), spreads(hits)
    return out


def rows(runs, reference):
    """A line for each name of a row, the reference first. The reference takes its whole runs to its own loss."""
    target = target_of(runs, reference)
    groups = {}
    for run in runs:
        groups.setdefault(run["row"], []).append(run)
    ours = [run for run in groups.get(reference, []) if not run["diverged"]]
    names = sorted(groups, key=lambda name: (name != reference, list(groups).index(name)))
    found = [row(name, groups[name], ours, target) for name in names]
    if ours:
        end = found[0]["reached"] = found[0]["end"]
        found[0]["reached_spread"] = spreads([run["curve"][-1] for run in ours])
        for line in found:
            if "reached" in line:
                line["share"] = {key: line["reached"][key] / end[key] for key in ("step", "first", "start")}
    return target, found


def number(value, digits):
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def with_spread(line, key, digits):
    text = number(line["reached"][key], digits)
    about = line["reached_spread"][key]
    return text if math.isnan(about) else f"{text} +- {number(about, digits)}"


def cells(line):
    """As text. Runs that do not all reach the target show how many did; runs that diverged, how many."""
    seeds = str(line["seeds"]) + (f", {line['diverged']} diverged" if line["diverged"] else "")
    if "loss" not in line:
        return [line["recipe"], seeds] + ["-"] * (len(HEADS) - 2)
    head = [line["recipe"], seeds, number(line["loss"], 4), number(line["spread"], 4), number(line["difference"], 4),
            number(line["error"], 4), number(line["ms"], 2)]
    if "reached" not in line:
        return head + [f"{line['hits']} of {line['seeds']} reach it"] + ["-"] * 6
    tokens = number(line["reached"]["tokens"] / 1e6, 1)
    shares = [number(100 * line["share"][key], 1) for key in ("step", "first", "start")]
    return [*head, with_spread(line, "step", 0), tokens, with_spread(line, "first", 1), with_spread(line, "start", 1),
            *shares]


def format_table(runs, reference):
    """Markdown."""
    target, found = rows(runs, reference)
    lines = [HEADS, ["---"] * len(HEADS), *map(cells, found)]
    said = f"no run of {reference} yet: no target"
    if target is not None:
        said = f"target: {target:.4f}, the loss that {reference} ends with"
    return said + "\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
