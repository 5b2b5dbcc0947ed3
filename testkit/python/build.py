"""Builds the wheels of gozkd-testkit, one per platform, with the program inside.

    python3 build.py VERSION OUT PROGRAMS

PROGRAMS has files gozkd-testkit-OS-ARCH, as Go names them, and licences. Equal input gives equal bytes.
"""

import base64
import csv
import hashlib
import io
import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TAGS = {
    ("linux", "amd64"): ["manylinux_2_17_x86_64", "musllinux_1_1_x86_64"],
    ("linux", "arm64"): ["manylinux_2_17_aarch64", "musllinux_1_1_aarch64"],
    ("darwin", "amd64"): ["macosx_12_0_x86_64"],
    ("darwin", "arm64"): ["macosx_12_0_arm64"],
    ("windows", "amd64"): ["win_amd64"],
    ("windows", "arm64"): ["win_arm64"],
}


def wheel(version: str, system: str, arch: str, program: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    tags = TAGS[system, arch]
    name = f"gozkd_testkit-{version}"
    info = f"{name}.dist-info"
    suffix = ".exe" if system == "windows" else ""
    files = {f"gozkd_testkit/{p.name}": p.read_bytes() for p in sorted((HERE / "gozkd_testkit").glob("*.py"))}
    files[f"gozkd_testkit/gozkd-testkit{suffix}"] = program.read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: gozkd-testkit\nVersion: {version}\nRequires-Python: >=3.9\n"
        "Summary: ZooKeeper servers for tests\nDescription-Content-Type: text/markdown\n\n"
    ).encode() + (HERE / "README.md").read_bytes()
    files |= {f"{info}/licenses/{p.name}": p.read_bytes() for p in sorted(program.parent.glob("LICENSE*"))}
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: gozkd\nRoot-Is-Purelib: false\n" + "".join(f"Tag: py3-none-{t}\n" for t in tags)
    ).encode()
    files[f"{info}/entry_points.txt"] = (
        b"[pytest11]\ngozkd_testkit = gozkd_testkit.pytest_plugin\n\n[console_scripts]\ngozkd-testkit = gozkd_testkit:_main\n"
    )
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    files[f"{info}/RECORD"] = record.getvalue().encode()
    path = out / f"{name}-py3-none-{'.'.join(tags)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.startswith("gozkd_testkit/gozkd-testkit") else 0o100644) << 16  # pip wants S_IFREG
            z.writestr(entry, data)
    return path


def main(version: str, out: str, programs: str) -> None:
    version = re.sub(r"-(a|b|rc)[a-z]*\.", r"\1", version)  # 0.1.0-alpha.7 is 0.1.0a7 to PEP 440
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    for system, arch in TAGS:
        for program in pathlib.Path(programs).glob(f"gozkd-testkit-{system}-{arch}*"):
            print(wheel(version, system, arch, program, pathlib.Path(out)))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
