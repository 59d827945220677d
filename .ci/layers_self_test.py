"""Small test crates for `.ci/layers --self-test`, and the findings that the check must report."""

import pathlib
import tempfile

from rust_imports import Crate

LAYERS = {"low": ["low", "high::part"], "middle": ["middle"], "high": ["high"], "root": ["crate"]}
FILES = {
    "lib.rs": "mod low;\nmod middle;\nmod high;\n",
    "low.rs": "pub struct Bottom;\n",
    "middle.rs": "pub struct Half;\n",
    "high.rs": "pub struct Top;\npub enum Kind { A }\npub fn make() {}\n",
}
COMMENTS_AND_STRINGS = r"""
//! crate::high::Top
/* use crate::high::Top; */
const A: (&str, &str, char, u8) = ("\"crate::high::Top", r#""crate::high::Top"#, '"', b'\'');
fn f<'a>(_: &'a str) {} // crate::high::Top
"""
TESTS = """
#[cfg(test)]
mod tests;
#[cfg(test)]
use crate::high::{Kind, make};
struct Fields {
    #[cfg(test)]
    top: crate::high::Top,
    bottom: Bottom,
}
struct Bottom;
#[cfg(test)]
#[allow(dead_code)]
mod more {
    use crate::high::{Kind, make};
    fn f() {}
}
#[cfg(test)]
fn f<A, B: crate::high::Top>() {}
"""

# Each test has a name; the files that differ from `FILES`, with `None` for an omitted file; the upward imports
# (importing file, line, item and its file); and the files of each cycle.
CRATES = [
    ("clean crate", {"high.rs": "use crate::low::Bottom;\nuse super::middle::{self, Half as B};\n"}, [], []),
    (
        "direct import",
        {"low.rs": "\nuse crate::{\n    high::{Kind, Top},\n};\n"},
        ["low.rs:3 Kind high.rs", "low.rs:3 Top high.rs"],
        [],
    ),
    (
        "renamed re-export in the root",
        {"lib.rs": FILES["lib.rs"] + "pub use high::Top as Renamed;\n", "low.rs": "use crate::Renamed;\n"},
        ["low.rs:1 Top high.rs"],
        [],
    ),
    (
        "glob re-export in a lower module",
        {"middle.rs": "pub use crate::high::*;\n", "low.rs": "use crate::middle::Top;\n"},
        ["low.rs:1 Top high.rs"],
        [],
    ),
    ("path in an expression", {"low.rs": "fn f() {\n    crate::high::make()\n}\n"}, ["low.rs:2 make high.rs"], []),
    (
        "path that begins with an imported module",
        {"low.rs": "use crate::high;\nfn f() { high::make() }\n"},
        ["low.rs:2 make high.rs"],
        [],
    ),
    ("imported module without a path", {"low.rs": "use crate::high;\n"}, ["low.rs:1 high high.rs"], []),
    ("enum variant", {"low.rs": "fn f() { super::high::Kind::A; }\n"}, ["low.rs:1 Kind high.rs"], []),
    (
        "private import of the parent",
        {"low.rs": "mod child;\nuse crate::high::Top;\n", "low/child.rs": "use super::*;\nfn f(_: Top) {}\n"},
        ["low/child.rs:1 Top high.rs", "low.rs:2 Top high.rs"],
        [],
    ),
    (
        "path through a glob import",
        {"low.rs": "mod child;\nuse crate::high;\n", "low/child.rs": "use super::*;\nfn f() { high::make() }\n"},
        ["low/child.rs:2 make high.rs", "low.rs:2 high high.rs"],
        [],
    ),
    (
        "item of a macro",
        {"high.rs": "string_enum! { pub Status { A } }\n", "low.rs": "use crate::high::Status;\n"},
        ["low.rs:1 Status high.rs"],
        [],
    ),
    (
        "exported macro",
        {
            "high.rs": "macro_rules! names { () => {} }\npub(crate) use names;\n",
            "low.rs": "use crate::high::names;\n",
        },
        ["low.rs:1 names high.rs"],
        [],
    ),
    (
        "inline module and folder",
        {
            "low.rs": None,
            "low/mod.rs": "mod inner {\n    mod child;\n    fn f() { self::super::super::high::make() }\n}\n",
            "low/inner/child.rs": "use super::super::super::high::Top;\n",
        },
        ["low/inner/child.rs:1 Top high.rs", "low/mod.rs:3 make high.rs"],
        [],
    ),
    (
        "names in other blocks",
        {
            "middle.rs": "mod inner {}\nimpl A {\n    fn Top() {}\n}\nmod child;\npub use crate::high::Top;\n",
            "middle/child.rs": "",
            "low.rs": "use crate::middle::Top;\n",
        },
        ["low.rs:1 Top high.rs"],
        [],
    ),
    (
        "function with the name of a module",
        {
            "middle.rs": "pub mod make;\npub use crate::high::make;\n",
            "middle/make.rs": "pub struct Made;\n",
            "low.rs": "fn f() {\n    crate::middle::make();\n    crate::middle::make::Made;\n}\n",
        },
        ["low.rs:2 make high.rs", "low.rs:3 Made middle/make.rs"],
        [],
    ),
    (
        "module with a path",
        {"low.rs": '#[path = "other/file.rs"]\nmod child;\n', "other/file.rs": "use crate::high::Top;\n"},
        ["other/file.rs:1 Top high.rs"],
        [],
    ),
    (
        "cycle of two files",
        {
            "high.rs": "mod a;\nmod b;\n",
            "high/a.rs": "use super::b::B;\npub struct A;\n",
            "high/b.rs": "use super::a::A;\npub struct B;\n",
        },
        [],
        ["high/a.rs high/b.rs"],
    ),
    (
        "cycle of three files",
        {
            "high.rs": "mod a;\nmod b;\npub use a::A;\npub const FIRST: A = A;\n",
            "high/a.rs": "use super::b::B;\npub struct A;\n",
            "high/b.rs": "fn f() { super::FIRST; }\npub struct B;\n",
        },
        [],
        ["high/a.rs high/b.rs high.rs"],
    ),
    ("re-export alone", {"low.rs": "pub(crate) use crate::high::{Top, make};\nfn make() {}\n"}, [], []),
    (
        "re-export whose name the file uses",
        {"low.rs": "pub use crate::high::Top;\nfn f(_: Top) {}\n"},
        ["low.rs:1 Top high.rs"],
        [],
    ),
    (
        "visibility",
        {"high.rs": "mod part;\n", "high/part.rs": "pub(in crate::high) fn f() {}\npub(crate) struct Part;\n"},
        [],
        [],
    ),
    ("comments and strings", {"low.rs": COMMENTS_AND_STRINGS}, [], []),
    ("tests", {"low.rs": TESTS, "low/tests.rs": "use crate::high::Top;\n"}, [], []),
    (
        "code after tests",
        {"low.rs": TESTS.replace("bottom: Bottom", "kind: crate::high::Kind") + "use crate::high::Top;\n"},
        ["low.rs:9 Kind high.rs", "low.rs:20 Top high.rs"],
        [],
    ),
]


def run(check_class):
    for name, files, upward, cycles in CRATES:
        check = check_of(check_class, files)
        result = [f"{path}:{line} {item} {target}" for path, target, item, line, _ in check.upward]
        assert result == upward, f"{name}: upward imports are {result}"
        result = [" ".join(map(str, cycle)) for cycle in check.cycles]
        assert result == cycles, f"{name}: cycles are {result}"
        assert check.is_bad() == bool(upward or cycles), name
        assert not check.crate.unresolved, f"{name}: unresolved paths are {check.crate.unresolved}"
    check_report(check_class)
    print(f"self-test: {len(CRATES) + 1} crates passed")


def check_report(check_class):
    """Checks the texts of findings, and that a module without a layer is a finding."""
    lib = FILES["lib.rs"] + "mod other;\npub use high::Top;\n"
    other = {"other.rs": "mod inside;\nuse crate::low::Missing;\n", "other/inside.rs": ""}
    check = check_of(check_class, {"lib.rs": lib, "low.rs": "use crate::Top;\n", **other})
    assert list(check.upward_lines()) == ["low.rs:1: low imports high upwards: crate::Top (defined in high.rs)"]
    assert list(check.edge_lines()) == ["low.rs -> high.rs: Top (1)"]
    assert list(check.layer_lines()) == ["other.rs: module other is in no layer of sample in .ci/layers.toml"]
    assert list(check.unresolved_lines()) == ["other.rs:2: unresolved: crate::low::Missing"]
    check.limit = 1
    assert check.is_bad()
    check.without_layer = []
    assert check.is_bad()
    check.unresolved = []
    assert not check.is_bad()


def check_of(check_class, files):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, text in {**FILES, **files}.items():
            if text is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
        return check_class("sample", {"layers": LAYERS, "limit": 0}, Crate(folder, "lib.rs"))
