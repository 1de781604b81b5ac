"""The table: what came out of each run, and what is printed of all of them."""

import statistics

from claims import CLAIMS, OF_T4

CONFIDENCE = 0.95
HOLDS, VIOLATED, UNDECIDED = "holds", "violated", "undecided"


def came_out(finding, expected):
    """How a run came out by one checker, with the sentence of lockstorm's finding."""
    verdict = finding["verdict"]
    if verdict["verdict"] == VIOLATED:
        return VIOLATED, f"{finding['checker']}: {verdict['witness']['summary']}"
    if not expected:
        return verdict["verdict"], verdict.get("because", "")
    if finding["match"] == "as-expected":
        return HOLDS, verdict.get("because", "")
    # Its measure is above the bound by less than the error of its times, or the checker does not
    # know.
    is_decided = verdict["verdict"] == HOLDS and finding["match"] == "otherwise"
    return VIOLATED if is_decided else UNDECIDED, f"{finding['checker']}: {finding.get('because', '')}"


def worst(outcomes):
    for one in (VIOLATED, UNDECIDED):
        if any(outcome == one for outcome, _ in outcomes):
            return one, [said for outcome, said in outcomes if outcome == one]
    return HOLDS, [said for _, said in outcomes]


def cells_of(claim, findings):
    """The cells that a run decides: its claim's, and those of other checkers that are asked about
    the same run.
    """
    cells = {claim.key: worst([came_out(findings[checker], True) for checker in claim.expect])}
    if claim.key == "T4":
        for key, _, checker in OF_T4:
            outcome, said = came_out(findings[checker], False)
            cells[key] = outcome, [said]
    return cells


def share(count, runs, undecided=0):
    """Wilson's interval of the share of violated seeds, in which an undecided one may be either: as
    lockstorm's own tables.
    """
    z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)

    def bound(yes, sign):
        part = yes / runs
        half = z * ((part * (1 - part) + z * z / (4 * runs)) / runs) ** 0.5
        return (part + z * z / (2 * runs) + sign * half) / (1 + z * z / runs)

    low = 0.0 if count == 0 else bound(count, -1)
    high = 1.0 if count + undecided == runs else bound(count + undecided, 1)
    return f"{100 * low:.0f}..{100 * high:.0f} %"


def in_words(cell, key):
    if cell is None:
        return "–"
    outcomes = [play["outcome"] for play in cell["plays"]]
    runs, violated, undecided = len(outcomes), outcomes.count(VIOLATED), outcomes.count(UNDECIDED)
    interval = share(violated, runs, undecided)
    if violated:
        # No client can close the gap before its write, so this is no mistake of a lock.
        word = "violated" if key == "L3" else "**violated**"
        return f"{word} {violated}/{runs} ({interval})"
    if undecided:
        return f"**undecided** {undecided}/{runs} ({interval})"
    return f"holds {runs}/{runs} ({interval})"


def millis(took):
    if not took:
        return "–"
    return f"{statistics.median(took):.2f} ms, {took[min(len(took) - 1, int(len(took) * 0.99))]:.1f} ms"


def freed(cell):
    if cell is None:
        return "–"
    times = [play["freed"] for play in cell["plays"]]
    seen = sorted(time for time in times if time is not None)
    if not seen:
        return "not within the run, 11 s"
    never = len(times) - len(seen)
    return f"{statistics.median(seen):.2f} s ({seen[0]:.2f}..{seen[-1]:.2f} s)" + (f", {never} not within the run" if never else "")


def claims():
    for claim in CLAIMS:
        yield claim.key, claim.says
        if claim.key == "T4":
            yield from ((key, says) for key, says, _ in OF_T4)


def table(board):
    columns = board["rows"]
    yield ["", *(column["system"] for column in columns)]
    yield ["---"] * (len(columns) + 1)
    yield ["its lock", *(column["lock"] for column in columns)]
    yield ["what it promises", *(column["promises"] for column in columns)]
    for key, _ in claims():
        yield [f"**{key}**", *(in_words(column["cells"].get(key), key) for column in columns)]
    yield ["acquisition: median, p99", *(millis(column["cost"]) for column in columns)]
    yield ["free after the death of a process", *(freed(column["cells"].get("T5")) for column in columns)]
    yield ["free after that of a machine", *(freed(column["cells"].get("T5m")) for column in columns)]


def page(board):
    lines = [
        "# Locks beside Redis", "",
        f"Made by `python3 trials/beside --seeds {board['seeds']} --out .` on {board['day']}, on one machine with {board['cores']} "
        f"cores, {'row by row' if board['kept'] else 'in one run'}.", "",
        "Each cell has the seeds with this outcome, of all that were played, and the interval of the share of *violated* seeds "
        "with a confidence of 95 %. lockstorm's checkers judge what clients believe and which writes arrive; nothing looks "
        "into a server. *Violated* is a "
        "counterexample. *Holds* is no proof. – is what was not tried; the reasons are below. The chapter "
        "[Locks beside Redis](book/src/beside.md) says how each server is started, and why each cell came out so.", ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in table(board)]
    lines += [""] + [f"* **{key}** {says}" for key, says in claims()]
    lines += ["", "An acquisition is that of a free lock, from the request to the peer until its answer, without a proxy "
              "between. It includes some 0.1 ms for the pipes and the JSON of the peer. A server's writes to "
              "disk are as by its defaults.", ""]
    lines += [f"* – {column['system']}, {column['lock']}, {key}: {why}" for column in board["rows"] for key, why in column["not_tried"].items()]
    lines += ["", "## What was found", ""]
    for column in board["rows"]:
        for key, _ in claims():
            cell = column["cells"].get(key)
            bad = [play for play in cell["plays"] if play["outcome"] != HOLDS] if cell else []
            if bad:
                first = bad[0]
                lines += [f"* {column['system']}, {column['lock']}, {key} {first['outcome']}: {' '.join(first['said'])}", "",
                          "  ```", f"  {first['again']}", f"  lockstorm check {first['history']}", "  ```"]
    if board["controls"]:
        lines += ["", "## Controls", "", "Locks with one mistake each, which must be found.", ""]
    for control in board["controls"]:
        found = ", ".join(f"{key} {in_words(cell, key)}" for key, cell in control["cells"].items())
        lines.append(f"* {control['lock'].removeprefix('control: ')}: {found}")
    return "\n".join(lines) + "\n"
