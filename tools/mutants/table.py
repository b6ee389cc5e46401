"""What the tests noticed, room by room."""
from collections import Counter

COLUMNS = ("killed", "survived", "equivalent", "not run")


def complaint(rule, result):
    """What is not as it should be, and whether it has a reason; nothing for most."""
    kind = result["result"]
    if kind == "survived":
        return f"survived: {rule.name}: {rule.why} ({rule.survives or 'write a test'})", bool(rule.survives)
    if kind == "does not build":
        return f"does not build: {rule.name}: mend the rule", False
    return None if kind in COLUMNS else (f"{kind}: {rule.name}: {result['by']}", False)


def show(rules, results):
    """Prints the table and what is not as it should be; 1 where something of that has no reason, else 0."""
    counts, complaints = {}, []
    for rule in rules:
        result = results.get(rule.key, {"result": "not run"})
        counts.setdefault(rule.room, Counter())[result["result"]] += 1
        complaints.append(complaint(rule, result))
    counts["all"] = sum(counts.values(), Counter())
    print(f"\n{'room':10} changes  " + "  ".join(COLUMNS))
    for room, count in counts.items():
        print(f"{room:10} {count.total():7}  " + "  ".join(f"{count[c]:{len(c)}}" for c in COLUMNS))
    seen = counts["all"]["killed"] + counts["all"]["survived"]
    print(f"killed: {100 * counts['all']['killed'] / max(seen, 1):.1f}% of {seen} that were run and can be noticed")
    complaints = [c for c in complaints if c]
    for text, _ in complaints:
        print(text)
    return int(any(not has_reason for _, has_reason in complaints))
