#!/usr/bin/env python3
"""Fails if a source uses a room that its own room may not use: `check_arrows.py SOURCE_ROOT [options]`.

Rooms and arrows are in cmake/rooms.txt. The script checks the #include lines of all sources, the import statements of the
Python package and, with --links, the lines `target|folder|linked target|its folder` that CMake writes. Each finding is one
line on stderr; the exit code is then 1.

    --links FILE    what targets link
    --stamp FILE    is written when all is well
    --depfile FILE  is written too: the files that the result depends on (make's syntax), folders included, so that new files count
    --strict        an exception that nothing needs any more is also a finding
"""

import argparse
import os
import re
import sys

import python_imports

TOPS = ("probe", "replay", "trainer", "viewer")
SOURCES = (".cpp", ".h", ".inl", ".cu", ".cuh")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)
PUBLIC = "probe/nanquest.h"
PACKAGE = "probe/attach/python/nanquest"


class Table:
    """The parsed rooms.txt."""

    def __init__(self, path):
        self.direct, self.exceptions, self.problems = {}, {}, []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.split("#")[0].strip()
                if "~>" in line:
                    arrow, _, reason = line.partition(":")
                    user, used = (part.strip() for part in arrow.split("~>"))
                    if not reason.strip():
                        self.problems.append(f"{path}:{number}: an exception needs a reason: {user} ~> {used}: why")
                    self.exceptions[user, used] = number
                elif line:
                    room, _, uses = line.partition("->")
                    self.direct[room.strip()] = uses.split()
        self.path = path
        self.reach = {room: self.closure(room, ()) for room in self.direct}

    def closure(self, room, above):
        if room in above:
            cycle = " -> ".join(above[above.index(room) :] + (room,))
            if not any("circle" in problem for problem in self.problems):
                self.problems.append(f"{self.path}: the arrows run in a circle: {cycle}")
            return set()
        if room not in self.direct:
            self.problems.append(f"{self.path}: {above[-1]} -> {room}: there is no line for {room}")
            return set()
        if room == "probe" and above:
            return {room}  # its users see the public headers, not the rooms behind them
        return {room}.union(*(self.closure(used, above + (room,)) for used in self.direct[room]))

    def allowed(self, room):
        """The rooms that a room may use; for a folder of rooms that is one target, those that any of them may use."""
        rooms = [room] if room in self.reach else [each for each in self.reach if each.startswith(room + "/")]
        return set().union(*(self.reach[each] for each in rooms), rooms)

    def knows(self, room):
        return room in self.direct or any(each.startswith(room + "/") for each in self.direct)


def room_of(path):
    """The room of a path: "probe/base" for "probe/base/result.h"; "" for a path outside nanquest; "probe" for the public header."""
    parts = path.split("/")
    if parts[0] not in TOPS:
        return ""
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def read_tree(root):
    """{source: [included paths]} and every file and folder that was read."""
    includes, seen = {}, []
    for top in TOPS:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            seen.append(folder)
            for name in sorted(files):
                if not name.endswith(SOURCES):
                    continue
                path = os.path.join(folder, name)
                seen.append(path)
                with open(path, encoding="utf-8") as text:
                    includes[os.path.relpath(path, root)] = INCLUDE.findall(text.read())
    return includes, seen


def public_headers(includes):
    """The public header and all headers of nanquest that it includes."""
    todo, found = [PUBLIC], set()
    while todo:
        header = todo.pop()
        if header in includes and header not in found:
            found.add(header)
            todo += includes[header]
    return found


def check_use(table, user, used, what, needed):
    """A finding, or None. `needed` collects the exceptions that were used."""
    if user == used or used in table.allowed(user):
        return None
    if (user, used) in table.exceptions:
        needed.add((user, used))
        return None
    return f"{what}: {user} may not use {used} (the arrows: {table.path})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    for option in ("--links", "--stamp", "--depfile"):
        parser.add_argument(option)
    parser.add_argument("--strict", action="store_true")
    args = parser.parse_args()
    table = Table(os.path.join(args.root, "cmake", "rooms.txt"))
    includes, seen = read_tree(args.root)
    public = public_headers(includes)
    findings, needed = list(table.problems), set()

    def check(user, used, what):
        finding = check_use(table, user, used, what, needed)
        if finding and finding not in findings:
            findings.append(finding)

    for source, included in includes.items():
        user = room_of(source)
        if not table.knows(user):
            findings.append(f"{source}: the room {user} has no line in {table.path}")
            continue
        for header in included:
            used = room_of(header)
            if used and not (user != "probe" and header in public and "probe" in table.allowed(user)):
                check(user, used, f'{source}: #include "{header}"')
    modules, files = python_imports.read(os.path.join(args.root, PACKAGE))
    seen += [*files, os.path.abspath(python_imports.__file__)]
    for module, imported in modules.items():
        for used in imported:
            check(python_imports.room_of(module), python_imports.room_of(used), f"{PACKAGE}: {module} imports {used}")
    findings += [f"{PACKAGE}: modules import each other in a circle: {' -> '.join(circle)}" for circle in python_imports.circles(modules)]
    if args.links:
        with open(args.links, encoding="utf-8") as lines:
            for target, user, linked, used in (line.strip().split("|") for line in lines):
                check(room_of(user + "/x"), room_of(used + "/x"), f"{user}/CMakeLists.txt: {target} links {linked}")
    if args.strict:
        findings += [
            f"{table.path}:{line}: nothing needs the exception {user} ~> {used} any more: take it out"
            for (user, used), line in table.exceptions.items()
            if (user, used) not in needed
        ]
    for finding in findings:
        print(f"arrows: {finding}", file=sys.stderr)
    if args.depfile:
        with open(args.depfile, "w", encoding="utf-8") as out:
            out.write(f"{args.stamp}: " + " \\\n  ".join(path.replace(" ", "\\ ") for path in seen) + "\n")
    if args.stamp and not findings:
        with open(args.stamp, "w", encoding="utf-8"):
            pass
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
