#!/usr/bin/env python3
"""Builds the book into target/book/html: checks what its commands print, writes the reference, and checks its links and
those of the documents beside it.

    cargo build --release && book/build.py            with the binary of the release build
    book/build.py --lockstorm PATH --update           writes into the chapters what the commands print now
    book/build.py --picture                           takes the picture of a counterexample again, with chromium

A chapter's ```console blocks are played in order, in a folder that holds book/examples. What a command prints must be what the block
has, but for how long it took. The chapters about the audit are played in a folder with the captures of scenarios/tests/audit, and long
lines are cut in them. The commands of README.md are played in the root, and write nothing. The reference comes from the binary: its schema, its lists and its stock scenarios.
Needs mdbook (`cargo install --locked mdbook`).
"""

import argparse
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.parse
from pathlib import Path

BOOK = Path(__file__).resolve().parent
ROOT = BOOK.parent
STOCK = ROOT / "scenarios/files"
CAPTURES = ROOT / "scenarios/tests/audit"
README = ROOT / "README.md"
OUT = ROOT / "target/book"
# The beginning of a run's page, for the introduction and the README.
PICTURE = BOOK / "src/images/clock_jump.png"


def output(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


# ---- what the commands of the chapters print

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def masked(text):
    """Without what differs from machine to machine: how long it took."""
    return re.sub(r"\((\d+ runs) in [^)]*\)", r"(\1)", text)


# The columns of a line in a chapter about the audit.
WIDTH = 136


def cut(line):
    return line if len(line) <= WIDTH else f"{line[:WIDTH - 3].rstrip()} .."


def played(block, lockstorm, folder, is_cut):
    """What a person would see who types the commands of a block."""
    seen = []
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        command = line[2:]
        if not re.match(r"(lockstorm|cat) ", command):
            sys.exit(f"only lockstorm and cat are run in the book: {command}")
        run = re.sub(r"^lockstorm\b", lambda _: f'"{lockstorm}"', command)
        ran = subprocess.run([run], shell=True, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        # 1 is a verdict, 2 that something is undecided or unfinished.
        if ran.returncode not in (0, 1, 2):
            sys.exit(f"{command} ends with {ran.returncode}")
        said = "\n".join(cut(line) if is_cut else line.rstrip() for line in masked(ran.stdout).splitlines())
        seen.append(f"{line}\n{said}\n" if said else f"{line}\n")
    return "".join(seen)


def check_commands(lockstorm, update):
    commands, wrong = 0, []
    for chapter in [README, *sorted((BOOK / "src").glob("*.md"))]:
        is_cut = chapter.stem.startswith("audit")
        folder = ROOT if chapter == README else OUT / "played" / chapter.stem
        if chapter != README:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(BOOK / "examples", folder)
        if is_cut:
            shutil.copytree(CAPTURES, folder, dirs_exist_ok=True)
        text = chapter.read_text()

        def again(found):
            nonlocal commands
            now = played(found[1], lockstorm, folder, is_cut)
            commands += now.count("\n$ ") + now.startswith("$ ")
            if now != found[1]:
                wrong.append(f"{chapter.relative_to(ROOT)} has\n{found[1]}\nand what is printed is\n{now}")
            return f"```console\n{now}```"

        new = BLOCK.sub(again, text)
        if update and new != text:
            chapter.write_text(new)
    if wrong and not update:
        sys.exit("\n".join(wrong) + "\nbook/build.py --update writes it into the chapters")
    print(f"{commands} commands print what the book says")


# ---- the reference

def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def beginning(example, most=110):
    """Of a long example as many of its parts as fit."""
    if len(example) <= most:
        return example
    cut, opened = example.rfind(", ", 0, most), re.search(r"[\[{]", example)
    if cut < 0 or not opened:
        return f"{example[:most]}..."
    return f"{example[:cut]}, ... {']' if opened.group() == '[' else '}'}"


def toml(key, value):
    """A key and its value, as a person would write them in a line."""
    def named(key):
        return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)

    def short(value):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            inner = ", ".join(f"{named(key)} = {short(one)}" for key, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        if isinstance(value, list):
            return f"[{', '.join(short(one) for one in value)}]"
        return str(value)
    return f"{named(key)} = {short(value)}"


# The sentence of a description that gives the default of a key: `Default: one.`
DEFAULT = re.compile(r"\s*\bDefault: ((?:[^.]|\.(?=[\w`]))+)\.")
# The same in the description of a table, for all its keys.
ALL_DEFAULTS = re.compile(r"Default of each key: ([^.]+)\.")


class Keys:
    """The keys of the format: every table of the schema as a section, with an example of each key from a scenario file."""

    def __init__(self, schema, documents):
        self.types, self.sections, self.examples = schema["$defs"], [], {}
        # The keys that no file shows, and those without a default.
        self.bare, self.silent = [], []
        for document in documents:
            self.collect(document, schema, True)
            for variant in document.get("variant", {}).values():
                self.collect(variant, schema, False)
        # What the sections of types are called.
        self.begun = {}
        self.section("The file", schema, cell(schema.get("description", "")))

    # -- which key of which type is used where

    def resolve(self, kind):
        """A type without the names and alternatives around it: what it is called, and what it is."""
        name = None
        while True:
            if "$ref" in kind:
                name = kind["$ref"].rsplit("/", 1)[1]
                kind = self.types[name]
            elif "anyOf" in kind and len([one for one in kind["anyOf"] if one.get("type") != "null"]) == 1:
                kind = next(one for one in kind["anyOf"] if one.get("type") != "null")
            else:
                return name, kind

    def described(self, kind):
        """What is said about a key, or else about its type: the first that says something on the way to what it is."""
        while "description" not in kind:
            options = [one for one in kind.get("anyOf", []) if one.get("type") != "null"]
            if "$ref" in kind:
                kind = self.types[kind["$ref"].rsplit("/", 1)[1]]
            elif len(options) == 1:
                kind = options[0]
            else:
                return ""
        return cell(kind["description"])

    def is_alternative(self, key, own, about):
        """Whether it is one of several keys of which a table has one: in such a table these are called as their types are."""
        refs = [one["$ref"] for one in [own, *own.get("anyOf", [])] if "$ref" in one]
        called = [re.sub(r"\d+$", "", ref.rsplit("/", 1)[1]) for ref in refs]
        return "xactly one" in about and key.title().replace("_", "") in called

    def collect(self, value, kind, whole):
        """Examples of the keys of a value; those of a variant may be parts, which the rest of the file completes."""
        name, kind = self.resolve(kind)
        for option in [*kind.get("anyOf", []), *kind.get("oneOf", [])]:
            if option.get("type") != "null":
                self.collect(value, option, whole)
        if isinstance(value, list):
            for one in value:
                self.collect(one, kind.get("items", {}), whole)
        elif isinstance(value, dict):
            for key, inner in value.items():
                own = kind.get("properties", {}).get(key)
                if own is not None:
                    self.examples.setdefault((id(kind), key), []).append((not whole, toml(key, inner)))
                    self.collect(inner, own, whole)
                elif isinstance(kind.get("additionalProperties"), dict):
                    self.collect(inner, kind["additionalProperties"], whole)

    # -- what is written

    def link(self, name, page=""):
        return f"[{self.begun[name]}]({page}#{self.begun[name].lower().replace(' ', '-')})"

    def type_of(self, kind):
        name, inner = self.resolve(kind)
        if name in self.begun:
            return self.link(name)
        if "properties" in inner:
            return "table"
        if name in WORDS:
            return WORDS[name]
        values = [one["const"] for one in inner.get("oneOf", []) if "const" in one] or inner.get("enum")
        if values:
            return " or ".join(f"`{value}`" for value in values)
        if isinstance(inner.get("additionalProperties"), dict):
            return f"tables by name: {self.type_of(inner['additionalProperties'])}"
        if "items" in inner:
            return f"list of {self.type_of(inner['items'])}"
        if "anyOf" in inner or "oneOf" in inner:
            options = [self.type_of(one) for one in inner.get("anyOf", inner.get("oneOf", [])) if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(options))
        kinds = inner.get("type", "any value")
        kinds = [one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null"]
        return {"integer": "whole number", "boolean": "`true` or `false`", "string": "text", "object": "table"}.get(kinds[0], kinds[0])

    def tables_in(self, kind):
        """The tables that a key leads to."""
        name, inner = self.resolve(kind)
        if name and "properties" in inner:
            yield name, inner
        for deeper in [inner.get("items"), inner.get("additionalProperties"), *inner.get("anyOf", []), *inner.get("oneOf", [])]:
            if isinstance(deeper, dict):
                yield from self.tables_in(deeper)

    def default_of(self, title, key, own, kind, about):
        """Returns the default of a key, and the rest of its description."""
        default, meaning, inner = own.get("default"), self.described(own), self.resolve(own)[1]
        said = DEFAULT.search(meaning)
        for_all = ALL_DEFAULTS.search(about) or ALL_DEFAULTS.search(inner.get("description", ""))
        if key in kind.get("required", []) or "must be given" in meaning:
            return "required", meaning
        if default not in (None, "", {}, []) and not isinstance(default, dict):
            return f"`{cell(json.dumps(default) if isinstance(default, bool) else default)}`", meaning
        if self.is_alternative(key, own, about):
            return "one of these", meaning
        if said:
            return said[1], (meaning[:said.start()] + meaning[said.end():]).strip()
        if for_all:
            return for_all[1], meaning
        if default and "properties" in inner:
            return "its own defaults", meaning
        # A table whose keys are names may be empty.
        if default in ("", {}, []) or inner.get("additionalProperties"):
            return "none", meaning
        self.silent.append(f"{title}: {key}")
        return "", meaning

    def section(self, title, kind, about):
        rows, below = [], []
        for key, own in kind["properties"].items():
            tables = [(name, inner) for name, inner in self.tables_in(own) if name not in self.begun]
            # Of two types with one name the schema counts the second.
            self.begun.update((name, re.sub(r"\d+$", f" of {title}", name)) for name, _ in tables)
            below += tables
            # What several locks have in common, and what one of them has of its own, are the same keys.
            alike = self.types[{"Lock": "Locks", "Locks": "Lock"}[title]] if title in ("Lock", "Locks") else kind
            used = self.examples.get((id(kind), key), []) + self.examples.get((id(alike), key), [])
            # The shortest that says something: neither empty nor nothing.
            telling = [one for one in used if not re.search(r"""= (\{\}|\[\]|""|"[+-]?0[a-z%]*")$""", one[1])]
            short = sorted(telling, key=lambda one: (one[0], len(one[1]), one[1])) or used
            example = f"`{cell(beginning(short[0][1]))}`" if short else ""
            if not used:
                self.bare.append(f"{title}: {key}")
            default, meaning = self.default_of(title, key, own, kind, about)
            rows.append(f"| `{key}` | {self.type_of(own)} | {default} | {meaning} {example} |")
        self.sections.append("\n".join([
            f"## {title}\n", f"{about}\n" if about else "",
            "| key | type | default | meaning, and an example |", "| --- | --- | --- | --- |", *rows, ""]))
        for name, inner in below:
            self.section(self.begun[name], inner, cell(inner.get("description", "")))

    def page(self):
        return "# Every key of the format\n\nPrinted from the JSON Schema (`lockstorm schema`); the examples are from scenario files. " \
            "The default is the value of a key that is not set, in words if it is not a value; " \
            "of the keys with *one of these* a table has one and no more.\n\n" \
            + "\n".join(self.sections).replace("| one of these |", "| *one of these* |")


# How the types are called that are written as text.
WORDS = {
    "Span": "time, as `\"1.5s\"`",
    "DrawnSpan": "time, or a range that is drawn from, as `\"1s..2s\"`",
    "Step": "signed time, as `\"+5s\"`",
    "DrawnStep": "signed time, or a range, as `\"-1s..+1s\"`",
    "Rate": "share, as `\"2%\"`",
    "DrawnRate": "share, or a range, as `\"0%..2%\"`",
    "Hosts": "[hosts](selectors.md)",
    "Name": "name",
    "Quorum": "`majority` or `half`",
    "Ticks": "time, share or number",
    "Formula": "sum of products and quotients, as `\"lease - fault.pause.at + rtt\"`, or two with `..` between them",
    "Expectation": "[expectation](checkers.md)",
    "Subject": "[subject](subjects.md)",
}


def listed(lockstorm, what):
    """What `lockstorm list` prints: rows of a name with its text, each with the lines below it; and what is said after them."""
    rows, after = [], ""
    text, _, after = output([lockstorm, "list", what]).partition("\n\n")
    for line in text.splitlines():
        if line.startswith(" "):
            rows[-1][2].append(line.strip())
        else:
            name, about = re.split(r"  +", line, maxsplit=1)
            rows.append((name, about, []))
    return rows, after.strip()


def page_of(title, intro, rows, after, below=None):
    lines = [f"# {title}\n", f"{intro}\n"]
    if below is None:
        lines += ["| name | meaning |", "| --- | --- |", *(f"| `{cell(name)}` | {cell(about)} |" for name, about, _ in rows)]
    else:
        for name, about, inner in rows:
            lines += [f"## {name}\n", f"{about}\n", *below(name, inner), ""]
    if after:
        lines += ["", cell(after)]
    return "\n".join(lines) + "\n"


class Examples:
    """Parts of the scenario files that show something, each with the command that runs the file."""

    def __init__(self, documents):
        self.documents = documents

    def shortest(self, parts):
        """The shortest of those that `parts` finds in a document, as a block."""
        found = [(len(part), str(path), part) for path, document in self.documents.items() for part in parts(document)]
        if not found:
            return ""
        _, path, part = min(found)
        return f"As in `lockstorm run {path}`:\n\n```toml\n{part}\n```"

    @staticmethod
    def table(title, written, first):
        """A whole table, with the key first that it is there for."""
        keys = [first, *(key for key in written if key != first)]
        return "\n".join([f"[{title}]", *(toml(key, written[key]) for key in keys)])

    def fault(self, kind, word=""):
        return self.shortest(lambda document: [
            part for name, fault in document.get("fault", {}).items() if kind in fault
            if word in (part := self.table(f"fault.{name}", fault, kind))])

    def workload(self, kind):
        def line(key, value):
            # A kind has a line of its own, as in most files.
            return f"workload.{toml(kind, value[kind])}" if key == "workload" else toml(key, value)
        return self.shortest(lambda document: [
            "\n".join([f"[client.{name}]", *(line(key, value) for key, value in client.items())])
            for name, client in document.get("client", {}).items() if kind in client.get("workload", {})])

    def subject(self):
        return self.shortest(lambda document: [
            self.table("lock", lock, "subject") for lock in [document.get("lock", {})] if "subject" in lock])

    def expectation(self, checker):
        """The shortest that bounds a measure, if there is one."""
        def all_of(document):
            parts = [document, *document.get("variant", {}).values()]
            return [part["expect"][checker] for part in parts if checker in part.get("expect", {})]

        def is_bounded(one):
            return isinstance(one, dict) and any(isinstance(bounds, dict) and bounds for bounds in one.values())

        def written(those):
            return lambda document: [f"expect.{toml(checker, one)}" for one in all_of(document) if those(one)]
        return self.shortest(written(is_bounded)) or self.shortest(written(lambda one: True))


def write_reference(lockstorm, folder):
    schema = json.loads(output([lockstorm, "schema"]))
    # By the paths by which they are run: those of the stock scenarios, and those in the repository.
    files = {path.relative_to(STOCK): path for path in sorted(STOCK.rglob("*.toml"))}
    files |= {path.relative_to(ROOT): path for path in sorted((BOOK / "examples").glob("*.toml"))}
    documents = {name: tomllib.loads(path.read_text()) for name, path in files.items()}
    keys, examples = Keys(schema, documents.values()), Examples(documents)
    folder.mkdir(parents=True)
    (folder / "keys.md").write_text(keys.page())

    def form(written, table, kind):
        """How one kind of a table is written, and where its keys are."""
        name, inner = keys.resolve(keys.types[table]["properties"][kind])
        about = f"with the keys of {keys.link(name, 'keys.md')}" if "properties" in inner else "and [how hosts are named](selectors.md)"
        return f"`{written}`, {about}.\n"

    def fault(kind, inner):
        return [form(" ".join(inner), "Fault", kind), examples.fault(kind)]

    def workload(kind, _):
        table = keys.resolve(keys.types["WorkloadEntry"]["properties"][kind])[1]
        must = table.get("required", [])
        parts = ", ".join([*must, *(f"{key}?" for key in table["properties"] if key not in must)])
        return [form(f"workload.{kind} = {{ {parts} }}", "WorkloadEntry", kind), examples.workload(kind)]

    def checker(name, inner):
        said = dict(line.split(": ", 1) for line in inner)
        bound = said.pop("bound", "none. One certain case is a violation")
        measures = [f"* `{measure}`: {cell(meaning)}" for measure, meaning in said.items()]
        return [*measures, f"\nBound: {cell(bound)}.\n", examples.expectation(name)]

    for name, title, intro, below in [
        ("faults", "Every fault", "What can go wrong, as `[fault.NAME]`. When, for how long and how often: the common keys of "
         f"{keys.link('Fault', 'keys.md')}.", fault),
        ("checkers", "Every checker", "What is judged, as `[expect]`, with what each measures, and the bound up to which it lets that pass.",
         checker),
        ("workloads", "Every workload", "What a client does over and over: `workload.NAME = { .. }`. What has a `?` may be left out.",
         workload),
        ("subjects", "Every subject", f"The systems under test: `lock.subject`. Those called `client` are the production client, the others models. {examples.subject()}", None),
        ("traits", "Every trait", "What a model does, and what can be laid over one: `lock.traits = { .. }`.",
         lambda _, inner: [", ".join(f"`{one}`" for one in " ".join(inner).split(", "))]),
        ("selectors", "How hosts are named", "In faults and links, where more than one host could be meant, or one that is known only in "
         f"a run. {examples.fault('crash', '@')}", None),
        ("scenarios", "The stock scenarios", "Each runs by its path: `lockstorm run redlock/clock_jump.toml`.", None),
    ]:
        rows, after = listed(lockstorm, name)
        (folder / f"{name}.md").write_text(page_of(title, intro, rows, after, below))
    return keys


# ---- the picture of a counterexample

def take_picture(lockstorm):
    page = OUT / "clock_jump.html"
    OUT.mkdir(parents=True, exist_ok=True)
    PICTURE.parent.mkdir(exist_ok=True)
    subprocess.run([lockstorm, "run", "redlock/clock_jump.toml", "--report", page], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1200,803",
                    f"--screenshot={PICTURE}", page.as_uri()], check=True, stderr=subprocess.DEVNULL)


# ---- links

class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        for key in ("href", "src"):
            if attributes.get(key):
                self.targets.append(attributes[key])


class Markdown:
    """The links of a document that is read in the repository, and the anchors that GitHub gives to its headings."""

    def __init__(self, text):
        text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        self.anchors = set()
        for heading in re.findall(r"^#+ +(.+?) *$", text, re.M):
            words = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading)).lower().replace(" ", "-")
            # Of headings with the same words the second and those after it are counted.
            count = sum(re.fullmatch(rf"{re.escape(words)}(-\d+)?", anchor) is not None for anchor in self.anchors)
            self.anchors.add(f"{words}-{count}" if count else words)
        self.targets = re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", text))


def check_links(folder, pages, known=None):
    """That each link of `pages` leads somewhere; the anchors of `known` are known as well."""
    parts, dead, checked = {**pages, **(known or {})}, [], 0
    for path, page in pages.items():
        for target in page.targets:
            link = urllib.parse.urlsplit(target)
            if link.scheme or link.netloc or target == "print.html":
                continue
            checked += 1
            to = (path.parent / urllib.parse.unquote(link.path)).resolve() if link.path else path
            to = to / "index.html" if folder == OUT / "html" and to.is_dir() else to
            if not to.exists():
                dead.append(f"{path.relative_to(folder)}: {target} is not there")
            elif link.fragment and to in parts and "=" not in link.fragment \
                    and urllib.parse.unquote(link.fragment) not in parts[to].anchors:
                dead.append(f"{path.relative_to(folder)}: {target} has no such part")
    if dead:
        sys.exit("\n".join(dead))
    print(f"{checked} links in {len(pages)} pages lead somewhere")


def check_documents():
    """The links of what is read in the repository itself. Chapters have theirs checked in the book, where they lead to the reference."""
    read = lambda paths: {path: Markdown(path.read_text()) for path in paths}
    documents = [path for folder in (".", "client", "scenarios", "sim", "world") for path in sorted((ROOT / folder).glob("*.md"))
                 if not path.is_symlink()]
    check_links(ROOT, read(documents), read((BOOK / "src").glob("*.md")))


def check_book(folder):
    pages = {path: Links(path.read_text()) for path in folder.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html")}
    check_links(folder, pages)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lockstorm", type=Path, default=ROOT / "target/release/lockstorm", help="the binary")
    options.add_argument("--update", action="store_true", help="write what the commands print into the chapters")
    options.add_argument("--picture", action="store_true", help="only take the picture of a counterexample again")
    options = options.parse_args()
    if not options.lockstorm.exists():
        sys.exit(f"{options.lockstorm} is not there: cargo build --release")
    if not shutil.which("mdbook"):
        sys.exit("mdbook is not installed: cargo install --locked mdbook")
    lockstorm = options.lockstorm.resolve()
    if options.picture:
        take_picture(lockstorm)
        return

    check_documents()
    # What the examples expect must be what happens.
    subprocess.run([lockstorm, "run", BOOK / "examples"], check=True)
    check_commands(lockstorm, options.update)
    shutil.rmtree(OUT / "book", ignore_errors=True)
    shutil.copytree(BOOK / "src", OUT / "book/src")
    shutil.copytree(BOOK / "examples", OUT / "book/examples")
    for file in ("book.toml", "wide.css"):
        shutil.copy(BOOK / file, OUT / "book" / file)
    shutil.copytree(ROOT / "trials/minimal", OUT / "trials/minimal", dirs_exist_ok=True)
    keys = write_reference(lockstorm, OUT / "book/src/reference")
    if keys.bare:
        sys.exit("no scenario file shows these keys:\n" + "\n".join(keys.bare))
    if keys.silent:
        sys.exit("these keys have no default, and their descriptions have no `Default: ..`:\n" + "\n".join(keys.silent))
    pictures = OUT / "book/src/pictures"
    pictures.mkdir()
    for command in [
        ["run", "payment.toml", "--report", pictures / "payment.html"],
        ["run", "storm.toml", "--plot", pictures / "storm.svg", "--plot-checker", "l1", "--plot-holds", pictures / "holds.svg"],
        ["run", "redlock/jump_and_latency.toml", "--seeds", "0..100", "--plot", pictures / "jump_and_latency.svg"],
    ]:
        subprocess.run([lockstorm, *command], cwd=BOOK / "examples", check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["mdbook", "build", OUT / "book", "--dest-dir", OUT / "html"], check=True)
    # mdbook says of a file that it cannot include, and goes on.
    if bare := [path.name for path in (OUT / "html").glob("*.html") if "{{#include" in path.read_text()]:
        sys.exit(f"what these pages include is not there: {', '.join(bare)}")
    check_book(OUT / "html")


if __name__ == "__main__":
    main()
