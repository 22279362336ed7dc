#!/usr/bin/env python3
"""clang-tidy over sources: `tidy.py BUILD_FOLDER [--all] [--since REVISION] [--jobs N]`.

Without --all: the sources of the product that see no header of LibTorch (those take half a minute each), and all that
differ from REVISION. The build folder must hold compile_commands.json of a configuration without precompiled headers;
nothing has to be built. Exit code 1 if anything was found.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRODUCT = ("probe", "replay", "trainer", "viewer")


def changed_since(revision):
    command = ["git", "-C", ROOT, "diff", "--name-only", "--diff-filter=d", "--merge-base", revision]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"tidy: {revision} is not known here, so only sources without LibTorch are looked at", file=sys.stderr)
    return {os.path.join(ROOT, path) for path in done.stdout.splitlines()}


def choose(build, everything, since):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {entry["file"]: entry["command"] for entry in json.load(file)}
    ours = [path for path in sorted(commands)
            if path.endswith(".cpp") and os.path.relpath(path, ROOT).split(os.sep)[0] in PRODUCT]
    if everything:
        return ours
    changed = changed_since(since) if since else set()
    return [path for path in ours if path in changed or "torch/include" not in commands[path]]


def look_at(program, build, path):
    done = subprocess.run([program, "-p", build, "--quiet", path], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else (done.stdout or done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--since")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    program = shutil.which("clang-tidy")
    if not program:
        print("tidy: there is no clang-tidy (apt-get install clang-tidy)", file=sys.stderr)
        return 70
    paths = choose(args.build, args.all, args.since)
    found = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, text in zip(paths, pool.map(lambda path: look_at(program, args.build, path), paths)):
            if text.strip():
                found += 1
                print(text.strip())
    print(f"tidy: {len(paths)} sources, {found} with findings")
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
