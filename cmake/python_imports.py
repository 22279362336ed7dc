"""Which modules of a Python package import which: read from the sources, nothing is imported."""

import ast
import os


def read(package):
    """{module: {modules of the package that it imports, also inside functions}}, named like "nanquest.base.rank", and every file
    and folder that was looked at."""
    top, sources, seen = os.path.basename(package), {}, []
    for folder, folders, files in os.walk(package):
        folders.sort()
        seen.append(folder)
        for name in sorted(name for name in files if name.endswith(".py")):
            path = os.path.join(folder, name)
            parts = [top, *os.path.relpath(path[:-3], package).split(os.sep)]
            sources[".".join(parts[:-1] if name == "__init__.py" else parts)] = path
    modules = {}
    for module, path in sources.items():
        with open(path, encoding="utf-8") as text:
            tree = ast.parse(text.read(), path)
        home = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        modules[module] = {name for node in ast.walk(tree) for name in _imported(node, home, sources)} - {module}
    return modules, seen + list(sources.values())


def _imported(node, home, known):
    """Modules that an import statement in a module of the package `home` means."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in known]
    if not isinstance(node, ast.ImportFrom):
        return []
    parts = home.split(".")
    base = ".".join([*parts[: len(parts) + 1 - node.level], *filter(None, [node.module])]) if node.level else node.module
    # Of `from folder import module` the module is meant, of `from module import name` the module itself.
    meant = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
    return [name for name in meant if name in known]


def room_of(module):
    """The folder of a module: "nanquest/base" of "nanquest.base.rank"; "nanquest" of what lies in the package itself."""
    parts = module.split(".")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def circles(modules):
    """Each circle that is met on the way through, as the modules along it."""
    done, found = set(), []

    def follow(module, above):
        if module in above:
            found.append([*above[above.index(module) :], module])
        elif module not in done:
            for used in sorted(modules[module]):
                follow(used, [*above, module])
            done.add(module)

    for module in sorted(modules):
        follow(module, [])
    return found
