"""The rules of the tree: layers, import hygiene, sizes, words that do not belong."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kernels", "engine", "studio")
STUDIO_MAY = ("engine.protocol", "engine.errors", "engine.clock", "engine.qa.report")
# Importing any of these must not follow from importing the key.
FORBIDDEN_AT_IMPORT = {
    "studio.app": ("torch", "cv2", "triton"),
    "engine.protocol.messages": ("torch", "cv2", "PySide6", "scipy"),
    "engine.server": ("torch", "cv2", "PySide6"),
    "kernels.ops": ("triton", "PySide6"),
    "engine.cli": ("torch", "cv2", "PySide6"),
}


def sources() -> list[Path]:
    return [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(name: str) -> bool:
    return name.split(".")[0] in (*PACKAGES, "tests")


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_layers(path: Path) -> None:
    package = module_name(path).split(".")[0]
    for name in filter(ours, imports(path)):
        top = name.split(".")[0]
        assert top != "tests", f"{path} imports tests"
        if package == "kernels":
            assert top == "kernels", f"{path} imports {name}"
        if package == "engine":
            assert top in ("engine", "kernels"), f"{path} imports {name}"
        if package == "studio" and top != "studio":
            assert name.startswith(STUDIO_MAY), f"{path} imports {name}"


def test_no_pickle_and_no_mediapipe() -> None:
    for path in sources():
        bad = imports(path) & {"pickle", "marshal", "shelve", "mediapipe", "joblib"}
        assert not bad, f"{path} imports {bad}"
        assert "recv_pyobj" not in path.read_text(), path


def test_distributed_has_one_importer() -> None:
    users = [p for p in sources() if any("torch.distributed" in i for i in imports(p))]
    assert [module_name(p) for p in users] in ([], ["engine.parallel"])


@pytest.mark.parametrize("module", FORBIDDEN_AT_IMPORT)
def test_import_is_light(module: str) -> None:
    forbidden = set(FORBIDDEN_AT_IMPORT[module])
    code = f"import sys, {module}; print(sorted(set(sys.modules) & {forbidden!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "[]", f"importing {module} also imported {done.stdout}"


def test_kernels_is_ours() -> None:
    import kernels

    assert kernels.__file__ is not None
    assert Path(kernels.__file__).parent == ROOT / "kernels"


def test_package_inits_do_nothing() -> None:
    for path in sources():
        if path.name == "__init__.py":
            tree = ast.parse(path.read_text())
            allowed = (ast.Expr, ast.Assign, ast.AnnAssign, ast.ImportFrom)
            assert all(isinstance(node, allowed) for node in tree.body), path


def test_size_bars() -> None:
    lengths = {p: len(p.read_text().splitlines()) for p in sources() if p.name != "__init__.py"}
    too_long = {module_name(p): n for p, n in lengths.items() if n > 400}
    assert not too_long, too_long
    assert statistics.median(lengths.values()) <= 140


def test_function_bars() -> None:
    sizes: list[int] = []
    for path in sources():
        limit = 120 if path.parts[-2] == "kernels" else 80
        for function in functions(path):
            size = (function.end_lineno or function.lineno) - function.lineno + 1
            sizes.append(size)
            assert size <= limit, f"{module_name(path)}.{function.name}: {size} lines"
    sizes.sort()
    assert statistics.median(sizes) <= 10
    assert sizes[int(0.95 * len(sizes))] <= 45


def test_broad_excepts_are_few() -> None:
    count = sum(p.read_text().count("except Exception") for p in sources())
    assert count <= 20, f"{count} broad excepts: one at the top of each thread and process"


def test_modules_have_docstrings() -> None:
    missing = [
        module_name(p)
        for p in sources()
        if p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert not missing, missing
