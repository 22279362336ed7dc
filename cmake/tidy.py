#!/usr/bin/env python3
"""clang-tidy over sources of the product: `tidy.py BUILD_FOLDER --all | --since REVISION [--most N] [--jobs N]`.

All of them, or those that differ from REVISION, the ones changed last first, and N units at most: the others are left for the night.
Sources that are compiled together (NANQUEST_UNITY) are looked at together. The build folder must hold compile_commands.json of a
configuration without precompiled headers; nothing has to be built. A source without findings is not looked at again until it, a
header of ours that it includes, its compile command or .clang-tidy changes (in $NANQUEST_CACHE/tidy). Exit code 1 if anything was found, or if --all found no source.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRODUCT = ("probe", "replay", "trainer", "viewer")
GROUPED = re.compile(r'^#include "(/[^"]+\.cpp)"', re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def changed_since(revision):
    command = ["git", "-C", ROOT, "diff", "--name-only", "--diff-filter=d", "--merge-base", revision]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"tidy: {revision} is not known here, so every source is looked at", file=sys.stderr)
        return None
    differ = {os.path.join(ROOT, path) for path in done.stdout.splitlines()}
    log = subprocess.run(["git", "-C", ROOT, "log", "--name-only", "--format=", f"{revision}..HEAD"], capture_output=True, text=True)
    newest = dict.fromkeys(os.path.join(ROOT, path) for path in log.stdout.splitlines() if path)
    return [path for path in newest if path in differ] + sorted(differ.difference(newest))


def sources_of(path):
    """The product's sources in a compiled file: itself, or those that are compiled together as it."""
    together = GROUPED.findall(read(path).decode(errors="replace")) if path.endswith("_cxx.cxx") else [path]
    return [source for source in together
            if source.endswith(".cpp") and os.path.relpath(source, ROOT).split(os.sep)[0] in PRODUCT]


def choose(commands, since):
    ours = [path for path in sorted(commands) if sources_of(path)]
    changed = changed_since(since) if since else None
    if changed is None:
        return ours
    unit_of = {source: path for path in ours for source in sources_of(path)}
    return list(dict.fromkeys(unit_of[source] for source in changed if source in unit_of))


@functools.cache
def read(path):
    with open(path, "rb") as file:
        return file.read()


def own_files(path):
    """The source and every header of nanquest that it includes, directly or not."""
    seen = set(sources_of(path))
    todo = list(seen)
    while todo:
        file = todo.pop()
        for name in INCLUDE.findall(read(file).decode(errors="replace")):
            for found in (os.path.join(ROOT, name), os.path.join(os.path.dirname(file), name)):
                if os.path.isfile(found) and found not in seen:
                    seen.add(found)
                    todo.append(found)
    return sorted(seen)


def key_of(version, path, command):
    """Everything that a finding can depend on, as one number; headers of others count by their folders' names."""
    parts = hashlib.sha256(version)
    words = [word for word in shlex.split(command) if not word.endswith(".o")]
    parts.update(" ".join(words).replace(ROOT, "").encode())
    for file in [os.path.join(ROOT, ".clang-tidy")] + own_files(path):
        parts.update(file.replace(ROOT, "").encode() + b"\0" + read(file) + b"\0")
    return parts.hexdigest()


def look_at(program, build, path, mark):
    """The findings in a source; "" and a mark for the next time if there are none."""
    options = ["--quiet"]
    if sources_of(path) != [path]:
        options.append("--checks=-bugprone-suspicious-include")  # a unit of several sources consists of such includes
    done = subprocess.run([program, "-p", build, *options, path], capture_output=True, text=True)
    text = (done.stdout if done.returncode == 0 else (done.stdout or done.stderr)).strip()
    if not text and done.returncode == 0 and mark:
        with open(mark, "w", encoding="utf-8"):
            pass
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true")
    which.add_argument("--since")
    parser.add_argument("--most", type=int, help="units that are looked at, if there are more (0: all)", default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    program = shutil.which("clang-tidy")
    if not program:
        print("tidy: there is no clang-tidy (apt-get install clang-tidy)", file=sys.stderr)
        return 70
    with open(os.path.join(args.build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {entry["file"]: entry["command"] for entry in json.load(file)}
    paths = choose(commands, args.since)
    left = len(paths) - args.most if 0 < args.most < len(paths) else 0
    paths = paths[: len(paths) - left]
    marks = dict.fromkeys(paths, "")
    if os.environ.get("NANQUEST_CACHE"):
        folder = os.path.join(os.environ["NANQUEST_CACHE"], "tidy")
        os.makedirs(folder, exist_ok=True)
        version = subprocess.run([program, "--version"], capture_output=True).stdout
        marks = {path: os.path.join(folder, key_of(version, path, commands[path])) for path in paths}
    todo = [path for path in paths if not (marks[path] and os.path.exists(marks[path]))]
    known = len(paths) - len(todo)
    found = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for text in pool.map(lambda path: look_at(program, args.build, path, marks[path]), todo):
            if text:
                found += 1
                print(text, flush=True)
    count = sum(len(sources_of(path)) for path in paths)
    print(f"tidy: {count} sources in {len(paths)} units, {found} of them with findings"
          + (f"; {known} known to be clean" if known else "") + (f"; {left} left for the night" if left else ""))
    return 1 if found or args.all and not paths else 0


if __name__ == "__main__":
    sys.exit(main())
