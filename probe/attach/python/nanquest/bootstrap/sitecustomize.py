"""Python runs this file when it starts, because `nanquest run` has put its folder first on PYTHONPATH.

It attaches the probe when the program imports torch. A sitecustomize that would have run without it still runs. A program that never
imports torch is not affected.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _import_nanquest():
    """The package that this file belongs to, unless the program has its own. Its folder holds other packages too, which the program
    would not find without nanquest, so the folder is not added to sys.path."""
    import importlib.util

    spec = importlib.util.find_spec("nanquest")
    if spec is not None and spec.origin is not None:  # a plain folder of that name has none
        return
    package = os.path.dirname(_HERE)
    spec = importlib.util.spec_from_file_location("nanquest", os.path.join(package, "__init__.py"), submodule_search_locations=[package])
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanquest"] = module
    spec.loader.exec_module(module)


def _attach():
    try:
        _import_nanquest()
        from nanquest.start.process import attach_by_environment

        attach_by_environment()
    except Exception as error:  # noqa: BLE001 (the program runs without the probe)
        sys.stderr.write(f"nanquest: the probe is off: {type(error).__name__}: {error}\n")


def _wait_for_torch():
    class Finder:
        """Finds nothing itself. For torch it returns the answer of the finders behind it, with a loader that
        attaches once it has run. It stays until then: many programs ask where torch is long before they import it."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "torch" or finder not in sys.meta_path:
                return None
            for other in sys.meta_path[sys.meta_path.index(finder) + 1 :]:
                find = getattr(other, "find_spec", None)
                spec = find(name, path, target) if find else None
                if spec is not None:
                    _attach_after(spec.loader, finder)
                    return spec
            return None

    finder = Finder()
    sys.meta_path.insert(0, finder)


def _attach_after(loader, finder):
    """Makes `loader` attach after it has run torch. A loader whose attribute can't be set is left as it is."""
    run = getattr(loader, "exec_module", None)
    if run is None or isinstance(loader, type):
        return

    def exec_module(module):
        run(module)
        vars(loader).pop("exec_module", None)
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        _attach()

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass


def _run_the_other():
    """Runs the sitecustomize that this one hides."""
    import importlib.machinery
    import importlib.util

    paths = [path for path in sys.path if os.path.abspath(path or os.getcwd()) != _HERE]
    sys.path[:] = paths
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _say_here(facts=""):
    """Tells `nanquest run` that the probe was in this process (nanquest/tell/reports.py)."""
    folder = os.environ.get("NANQUEST_REPORTS")
    if folder and os.path.isdir(folder):
        with open(os.path.join(folder, str(os.getpid())), "w") as file:
            file.write(facts)


def _switched_off():
    return os.environ.get("NANQUEST", "").strip().lower() in ("off", "0", "false", "no")


if os.environ.get("NANQUEST_ATTACH") == "1":
    try:
        _say_here('{"off": "NANQUEST=off"}' if _switched_off() else "")
        if _switched_off():
            pass
        elif "torch" in sys.modules:
            _attach()
        else:
            _wait_for_torch()
    except Exception as problem:  # noqa: BLE001 (the program runs without the probe)
        sys.stderr.write(f"nanquest: the probe is off: {type(problem).__name__}: {problem}\n")
_run_the_other()
