//! The help texts, against the files in `tests/goldens/help`: `UPDATE_GOLDEN=1 cargo test --test cli` writes them anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fs};

use crate::support::Scratch;

/// Commands that the help texts do not list.
const HIDDEN: &[&str] = &["dev", "iso embed", "iso show", "iso remove"];

/// The help text of a command and, by their names, of all below it.
fn collect(scratch: &Scratch, command: &str, texts: &mut BTreeMap<String, String>) {
    let text = scratch.kindling(&format!("{command} --help")).printed();
    let hidden = HIDDEN.iter().filter_map(|hidden| match hidden.rsplit_once(' ') {
        Some((parent, name)) => (parent == command).then_some(name),
        None => command.is_empty().then_some(hidden),
    });
    let children: BTreeSet<String> = listed(&text).into_iter().chain(hidden.map(str::to_owned)).collect();
    for child in children {
        collect(scratch, format!("{command} {child}").trim(), texts);
    }
    texts.insert(format!("kindling {command}").trim().replace(' ', "-"), text);
}

/// The commands that a help text lists.
fn listed(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn help_texts_are_the_recorded_ones() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/help");
    let mut texts = BTreeMap::new();
    collect(&Scratch::new(), "", &mut texts);
    assert!(texts.len() > 30);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in &texts {
            fs::write(folder.join(format!("{name}.txt")), text).unwrap();
        }
        return;
    }
    let recorded = fs::read_dir(&folder).into_iter().flatten().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    });
    let recorded: BTreeMap<String, String> = recorded.collect();
    for name in texts.keys().chain(recorded.keys()) {
        let (now, before) = (texts.get(name), recorded.get(name));
        assert!(
            now == before,
            "{name}: the help text has changed; if that is right, run UPDATE_GOLDEN=1 cargo test --test cli\n\
             before:\n{}\nnow:\n{}",
            before.map_or("nothing", String::as_str),
            now.map_or("nothing", String::as_str),
        );
    }
}
