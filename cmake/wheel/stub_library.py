"""stub_library.py LIBRARY STUB NEWEST [NEWEST ...]: makes a library to link with instead of LIBRARY, which has the same names in the same
versions, but no version newer than NEWEST, such as GLIBCXX_3.4.25. What is newer is then an undefined symbol, or is found elsewhere."""

import pathlib
import re
import subprocess
import sys
import tempfile


def number(version):
    prefix, _, digits = version.partition("_")
    return prefix, [int(part) for part in re.findall(r"\d+", digits)]


def main(library, stub, *newest):
    limits = dict(number(each) for each in newest)
    said = subprocess.run(["readelf", "-W", "--dyn-syms", library], text=True, capture_output=True, check=True).stdout
    lines, versions = [], {}
    # Number, address, size, type, binding, visibility, section, name@@version; a default version is one that new programs get.
    for index, (kind, name, version) in enumerate(re.findall(r"^ *\d+: \w+ +\w+ (\w+) +\w+ +\w+ +\d+ (\S+?)@@(\S+)$", said, re.M)):
        prefix, numbers = number(version)
        if prefix in limits and numbers <= limits[prefix]:
            versions[version] = True
            section = '.section .tdata, "awT", @progbits' if kind == "TLS" else ".text"
            shape = {"TLS": "tls_object", "OBJECT": "object"}.get(kind, "function")
            lines += [
                section,
                f".globl s{index}",
                f".type s{index}, @{shape}",
                f"s{index}: .byte 0",
                f".size s{index}, 1",
                f".symver s{index}, {name}@@{version}",
            ]
    with tempfile.TemporaryDirectory() as folder:
        names, source = pathlib.Path(folder, "names.map"), pathlib.Path(folder, "stub.s")
        names.write_text(
            "".join(f"{version} {{ {'local: *;' if not at else ''} }};\n" for at, version in enumerate(sorted(versions, key=number)))
        )
        source.write_text("\n".join(lines) + "\n")
        subprocess.run(
            [
                "cc",
                "-shared",
                "-nostdlib",
                "-fuse-ld=bfd",
                f"-Wl,-soname,{pathlib.Path(library).name}",
                f"-Wl,--version-script={names}",
                str(source),
                "-o",
                stub,
            ],
            check=True,
        )


main(*sys.argv[1:])
