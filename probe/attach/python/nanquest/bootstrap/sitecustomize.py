"""Python runs this at its start when `nanquest run` has put the folder first on PYTHONPATH.

It waits for torch to be imported and attaches then. A sitecustomize that would have run without it still runs. A
program that never imports torch notices nothing.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _wait_for_torch():
    import importlib.abc
    import importlib.machinery

    def attach():
        try:
            import importlib.util
            if importlib.util.find_spec("nanquest") is None:
                sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
            from nanquest import attachment
            from nanquest.settings import Settings, say
            try:
                attachment.attach(Settings.from_environment())
            except ValueError as error:
                say(f"the probe is off: {error}")
        except Exception as error:
            sys.stderr.write(f"nanquest: the probe is off: {type(error).__name__}: {error}\n")

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != "torch":
                return None
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            loader = getattr(spec, "loader", None)
            if loader is None or not hasattr(loader, "exec_module"):
                return None
            run = loader.exec_module

            def exec_module(module):
                run(module)
                loader.__dict__.pop("exec_module", None)
                attach()

            try:
                loader.exec_module = exec_module
            except AttributeError:
                return None
            return spec

    if "torch" in sys.modules:
        attach()
    else:
        sys.meta_path.insert(0, Finder())


def _run_the_other():
    """The sitecustomize that this one stands in front of."""
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


if os.environ.get("NANQUEST_ATTACH") == "1":
    try:
        _wait_for_torch()
    except Exception as problem:
        sys.stderr.write(f"nanquest: the probe is off: {type(problem).__name__}: {problem}\n")
_run_the_other()
