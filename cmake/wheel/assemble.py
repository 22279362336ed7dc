"""Makes one wheel for several minor versions of PyTorch.

    assemble.py DIST BUILD [BUILD ...]

Each BUILD is a folder where `cmake --install BUILD --component python` gives nanquest/lib/torch-<minor> and what belongs to no PyTorch.
What a later one has of the latter is left out. Prints the wheel's path.
"""

import base64
import hashlib
import pathlib
import re
import stat
import struct
import subprocess
import sys
import tempfile
import zipfile

import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDEST = (2, 17)  # a system that is older has no Python that we need
# The C library's, the compiler's, those of a screen, and PyTorch's.
SYSTEMS = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|EGL|GL|X11|torch|torch_cpu|c10|gomp))\.so(\.\d+)?")
WHEN = (2020, 1, 1, 0, 0, 0)  # in the archive, so that the same content gives the same file


def glibc_wanted(path):
    """The newest glibc that a library or program names, such as (2, 27)."""
    said = subprocess.run(["objdump", "-T", str(path)], text=True, capture_output=True, check=True).stdout
    return max([OLDEST, *(tuple(map(int, number.split("."))) for number in re.findall(r"GLIBC_(\d+\.\d+)", said))])


def check_libraries(files):
    """Ends with a line if a library that one of them needs is neither among them nor on every system that has its kind of program."""
    names = {pathlib.PurePath(name).name for name in files}
    for name, path in files.items():
        if not is_elf(path):
            continue
        said = subprocess.run(["objdump", "-p", str(path)], text=True, capture_output=True, check=True).stdout
        for needed in re.findall(r"NEEDED\s+(\S+)", said):
            if needed not in names and not SYSTEMS.fullmatch(needed):
                sys.exit(f"assemble.py: {name} needs {needed}, which is not in the wheel")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(5) == b"\x7fELF\x02"


def metadata(project):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Requires-Dist: {each}" for each in project["dependencies"]]
    for extra, wanted in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {each} ; extra == '{extra}'" for each in wanted)]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
    return "\n".join(lines)


def package_files():
    """What the package is made of without anything compiled: name in the wheel -> content."""
    top = ROOT / "probe/attach/python"
    files = {
        str(path.relative_to(top)): path.read_bytes()
        for path in sorted((top / "nanquest").rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    files["nanquest/agents.md"] = (ROOT / "docs/agents.md").read_bytes()
    return files


def built_files(builds, folder):
    """name in the wheel -> path of what was built."""
    found = {}
    for number, build in enumerate(builds):
        place = folder / str(number)
        subprocess.run(
            ["cmake", "--install", build, "--component", "python", "--prefix", str(place)], check=True, stdout=subprocess.DEVNULL
        )
        for path in sorted(place.rglob("*")):
            if path.is_file():
                found.setdefault(str(path.relative_to(place)), path)
    return found


def write(dist, project, files, tag):
    name = f"{project['name']}-{project['version']}"
    info = f"{name}.dist-info"
    scripts = "\n".join(f"{script} = {where}" for script, where in project["scripts"].items())
    files = dict(files)
    files[f"{info}/METADATA"] = metadata(project).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: nanquest\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}\n".encode()
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = []
    path = dist / f"{name}-{tag}.whl"
    dist.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for each, content in files.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            mode = 0o644 if isinstance(content, bytes) else stat.S_IMODE(content.stat().st_mode) | 0o644
            entry = zipfile.ZipInfo(each, WHEN)
            entry.external_attr, entry.compress_type = (stat.S_IFREG | mode) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{each},sha256={digest},{len(data)}")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", WHEN), "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return path


def main(dist, *builds):
    if not builds or struct.calcsize("P") != 8:
        sys.exit(__doc__)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory(prefix="nanquest-wheel-") as folder:
        built = built_files(builds, pathlib.Path(folder))
        check_libraries(built)
        glibc = max(glibc_wanted(path) for path in built.values() if is_elf(path))
        print(write(pathlib.Path(dist), project, {**package_files(), **built}, f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_x86_64"))


if __name__ == "__main__":
    main(*sys.argv[1:])
