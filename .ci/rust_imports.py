"""Resolves the imports of a Rust crate to the files that define the imported items. Used by `.ci/layers`.

It follows the module tree, re-exports, renames and globs, and skips tests, comments and strings. It does not expand
macros: an item that a macro declares belongs to the file of its module, if the file has the name as a word.
"""

import collections
import dataclasses
import os.path
import pathlib
import re
import sys

LITERAL = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)
    | "(?:\\.|[^"\\])*"
    | '(?:\\.[^'\n]*|[^'\\\n])'
    """,
    re.VERBOSE | re.DOTALL,
)
TEST = re.compile(r"#(?P<whole_file>!?)\[cfg\(\s*(?:all\(\s*)?test\b")
VISIBILITY = r"(?:pub\b(?:\s*\([^)]*\))?\s*)?"
ATTRIBUTE = re.compile(r"\s*#(?=\[)")
KEYWORDS = r"async|const|enum|extern|fn|impl|let|macro_rules|mod|static|struct|trait|type|union|unsafe|use"
ITEM = re.compile(rf"{VISIBILITY}(?:{KEYWORDS})\b")
BRACKET = re.compile(r"[(\[{]|[)\]}]")
TOKEN = re.compile(
    r"""
    (?P<visibility>\bpub\b(?:\s*\([^)]*\))?\s*)?\buse\s+(?P<tree>[^;<]*);
    | \bmod\s+(?P<module>\w+)\s*(?P<body>[;{])
    | \bmacro_rules!\s*(?P<macro>\w+)
    | \b(?:struct|enum|union|trait|type|fn|const|static(?:\s+mut)?)\s+(?!(?:fn|unsafe|async|extern)\b)(?P<item>\w+)
    | \bpub\s*\(\s*in\s[^)]*\)
    | (?<![\w:$])(?P<path>\$?\w+(?:\s*::\s*\w+)+)
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)
USE_TOKEN = re.compile(r"::|\bas\s+(?P<alias>\w+)|\$?\w+|[{},*]")
USED_NAME = re.compile(r"(?<![.:\w])(?<!\bfn )\w+")
FILE_OF_MODULE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]\s*(?:#\[[^\]]*\]\s*)*' + VISIBILITY + "$")


def blank(text):
    """Replaces a text by spaces, so that lines and columns stay the same."""
    return re.sub(r"[^\n]", " ", text)


def code_of(text):
    """Blanks comments, literals, and each item, field or statement with the attribute `#[cfg(test)]`."""
    code, start = LITERAL.sub(lambda match: blank(match.group()), text), 0
    while match := TEST.search(code, start):
        start = len(code) if match["whole_file"] else end_of_item(code, match.start())
        code = code[: match.start()] + blank(code[match.start() : start]) + code[start:]
    return code


def end_of_item(code, start):
    """Returns the end of an item. `start` is the position of its first attribute."""
    while attribute := ATTRIBUTE.match(code, start):
        start = end_of_brackets(code, attribute.end())
    start = re.compile(r"\s*").match(code, start).end()
    is_item = ITEM.match(code, start)
    while start < len(code) and code[start] not in ")]}":
        character = code[start]
        start = end_of_brackets(code, start) if character in "([{" else start + 1
        if character in "{;" or (character == "," and not is_item):
            break
    return start


def end_of_brackets(code, start):
    depth = 0
    for match in BRACKET.finditer(code, start):
        depth += 1 if match.group() in "([{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def use_leaves(tree):
    """Returns the path, the bound name and the offset of each leaf in a `use` tree."""
    prefixes, path, alias, offset, leaves = [()], (), None, 0, []
    for token in [*USE_TOKEN.finditer(tree), None]:
        text = token.group() if token else ","
        if token and token["alias"]:
            alias = token["alias"]
        elif text == "::":
            # A path that begins with `::` starts at another crate.
            path = path if path or prefixes != [()] else ("",)
        elif text == "{":
            prefixes.append(prefixes[-1] + path)
            path = ()
        elif text in ",}":
            if path:
                full = prefixes[-1] + path
                full = full[:-1] if full[-1] == "self" and len(full) > 1 else full
                leaves.append((full, alias or full[-1], offset))
            path, alias = (), None
            if text == "}":
                prefixes.pop()
        else:
            path, offset = (*path, text), token.start()
    return leaves


@dataclasses.dataclass(eq=False)
class Source:
    """A file, and the paths in its code: (module, path, name that a `use` binds, line)."""

    path: pathlib.Path
    code: str
    paths: list = dataclasses.field(default_factory=list)
    reexports: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.words = set(re.findall(r"\w+", self.code))

    def add_use(self, module, token, line):
        for path, name, offset in use_leaves(token["tree"]):
            offset += token.start("tree") - token.start()
            leaf = (module, path, name, line + token.group().count("\n", 0, offset))
            (self.reexports if token["visibility"] else self.paths).append(leaf)
            if name == "*":
                module.globs.append(path[:-1])
            else:
                module.uses[name].append(path)

    def add_used_reexports(self):
        """A re-export also counts as an import if the file itself uses the name."""
        code = TOKEN.sub(lambda token: " " if token["tree"] or token["module"] else token.group(), self.code)
        names = set(USED_NAME.findall(code))
        self.paths += [leaf for leaf in self.reexports if leaf[2] in names]


@dataclasses.dataclass(eq=False)
class Module:
    """A module, with the names in its scope."""

    path: tuple
    source: Source
    parent: "Module"
    children: dict = dataclasses.field(default_factory=dict)
    items: set = dataclasses.field(default_factory=set)
    uses: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    globs: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return "::".join(self.path) or "crate"

    def names(self):
        return {*self.children, *self.items, *self.uses}


@dataclasses.dataclass(frozen=True)
class Item:
    source: Source
    name: str


EXTERNAL = Item(None, "an item of another crate")


class Crate:
    """The modules of a crate by file, the imports, and the unresolved paths.

    `imports` has the first line and path for each (importing file, defining file, name of the item).
    """

    def __init__(self, folder, root):
        self.folder, self.modules, self.imports, self.unresolved, self.resolved = folder, {}, {}, [], {}
        if not (folder / root).is_file():
            sys.exit(f"cannot read {folder / root}: file not found")
        self.root = self.read(folder / root, (), None)
        for module in self.modules.values():
            module.source.add_used_reexports()
            self.add_imports(module.source)

    def read(self, file, path, parent):
        text = file.read_text()
        source = Source(file.relative_to(self.folder), code_of(text))
        module = self.modules[source.path] = Module(path, source, parent)
        owns_folder = parent is None or file.name == "mod.rs"
        self.parse(module, text, file.parent if owns_folder else file.parent / file.stem)
        return module

    def parse(self, module, text, folder):
        """Adds the items, uses and paths of a file to its modules. Also reads the files of child modules."""
        source, blocks, line, last = module.source, [module], 1, 0
        for token in TOKEN.finditer(source.code):
            line, last = line + source.code.count("\n", last, token.start()), token.start()
            within = next(block for block in reversed(blocks) if block)
            if token["tree"]:
                source.add_use(within, token, line)
            elif token["body"] == "{":
                child = Module((*within.path, token["module"]), source, within)
                within.children[token["module"]] = child
                blocks.append(child)
            elif name := token["module"]:
                child_folder = folder.joinpath(*within.path[len(module.path) :])
                file = self.file_of_module(child_folder, name)
                if match := FILE_OF_MODULE.search(text[: token.start()][-400:]):
                    file = pathlib.Path(os.path.normpath(self.folder / source.path.parent / match[1]))
                if file:
                    within.children[name] = self.read(file, (*within.path, name), within)
                else:
                    self.unresolved.append((source.path, line, f"mod {name} in {child_folder}"))
            elif name := token["macro"] or token["item"]:
                if blocks[-1]:
                    within.items.add(name)
            elif token["path"]:
                source.paths.append((within, tuple(re.split(r"\s*::\s*", token["path"])), None, line))
            elif token["brace"] == "{":
                blocks.append(None)
            elif token["brace"] and len(blocks) > 1:
                blocks.pop()

    @staticmethod
    def file_of_module(folder, name):
        files = [folder / f"{name}.rs", folder / name / "mod.rs"]
        return next((file for file in files if file.is_file()), None)

    def resolve(self, module, path, active=frozenset()):
        """Returns the module or item of a path, `EXTERNAL`, or `None`. `active` has the names being looked up."""
        if not active and (module, path) in self.resolved:
            return self.resolved[module, path]
        target, rest = self.resolve_first(module, path, active)
        while rest and isinstance(target, Module):
            name, *rest = rest
            target = self.lookup(target, name, not rest, active) or self.find_word(target, name, active)
        if not active:
            self.resolved[module, path] = target
        return target

    def resolve_first(self, module, path, active):
        if path[0] in ("crate", "$crate"):
            return self.root, path[1:]
        if path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                module = module.parent if module and path[0] == "super" else module
                path = path[1:]
            return module, path
        target = path[0] and self.lookup(module, path[0], len(path) == 1, active)
        return target or EXTERNAL, path[1:]

    def lookup(self, module, name, is_last, active=frozenset()):
        """Returns the module or item with this name. If both exist, the last segment of a path means the item."""
        key = (module, name, is_last)
        child = module.children.get(name)
        if key in active or (child and not is_last):
            return child
        if name in module.items:
            return Item(module.source, name)
        active |= {key}
        targets = [self.resolve(module, path, active) for path in module.uses.get(name, ())]
        if not any(targets):
            targets = [self.lookup(target, name, is_last, active) for target in self.glob_modules(module, active)]
        targets = [*filter(None, targets), child]
        return next((target for target in targets if isinstance(target, Item)), targets[0])

    def glob_modules(self, module, active=frozenset()):
        targets = [self.resolve(module, path, active) for path in module.globs]
        return [target for target in targets if isinstance(target, Module)]

    def find_word(self, module, name, active):
        """Returns an item that may be declared by a macro."""
        sources = [target.source for target in [*self.glob_modules(module, active), module]]
        return next((Item(source, name) for source in sources if name in source.words), None)

    def add_imports(self, source):
        first_names = {path[0] for _, path, name, _ in source.paths if name is None}
        for module, path, name, line in source.paths:
            target = self.resolve(module, path[:-1] if name == "*" else path)
            if target is None:
                self.unresolved.append((source.path, line, "::".join(path)))
            elif isinstance(target, Item):
                self.add_import(source, target, path, line)
            elif name == "*":
                self.add_glob(source, module, target, path[:-1], line)
            elif name not in first_names:
                # Otherwise, the imports are the paths that begin with the name of this module.
                self.add_import(source, Item(target.source, str(target)), path, line)

    def add_glob(self, source, module, target, path, line):
        """Adds the items of a glob import whose names occur as words in the file."""
        for name in self.visible_names(target, {module}) & source.words - module.names():
            item = self.lookup(target, name, is_last=True)
            if isinstance(item, Item):
                self.add_import(source, item, (*path, name), line)

    def visible_names(self, module, visited):
        names = module.names()
        for target in self.glob_modules(module):
            if target not in visited:
                names |= self.visible_names(target, {*visited, module})
        return names

    def add_import(self, source, item, path, line):
        if item.source and item.source is not source:
            key, first = (source.path, item.source.path, item.name), (line, "::".join(path))
            self.imports[key] = min(first, self.imports.get(key, first))
