//! Limits the number of dependencies of each library.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the crates that a library of the workspace depends on, without the library.
fn dependencies(library: &str, features: &str) -> BTreeSet<String> {
    let manifest = format!("{}/../../{library}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let cargo = std::env::var_os("CARGO").expect("cargo runs the test");
    let tree = Command::new(cargo)
        .args(["tree", "--locked", "--edges", "normal", "--no-dedupe", "--prefix", "none"])
        .args(["--format", "{p}", "--manifest-path", &manifest, "--features", features])
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    let mut lines: BTreeSet<String> = text.lines().map(|line| line.replace(" (proc-macro)", "")).collect();
    let own = text.lines().next().unwrap();
    assert!(lines.remove(own), "{own}");
    lines
}

#[test]
fn libraries_need_few_crates() {
    for (library, features, most) in [
        ("isogen", "", 45),
        ("ignition", "", 60),
        ("discovery", "", 80),
        ("discovery", "tokio", 80),
        ("discovery", "http", 80),
        ("rules", "", 55),
        ("assisted", "", 30),
        ("assisted", "client", 40),
        ("assisted", "aws-lc-rs", 105),
        ("agent", "simulated", 50),
        ("inventory", "", 250),
    ] {
        let count = dependencies(library, features).len();
        assert!(count <= most, "{library} with {features:?} needs {count} crates, not {most}");
        // A limit far above the number would not detect a new tree of dependencies.
        assert!(
            count * 10 >= most * 9,
            "{library} with {features:?} needs only {count} crates; lower {most}"
        );
    }
}

#[test]
fn images_need_no_runtime_database_or_command_line() {
    let names: BTreeSet<String> = dependencies("discovery", "")
        .iter()
        .filter_map(|it| Some(it.split_once(' ')?.0.to_owned()))
        .collect();
    assert!(names.contains("isogen") && names.contains("ignition"), "{names:?}");
    for unwanted in
        ["tokio", "hyper", "http", "axum", "sqlx", "reqwest", "rustls", "aws-lc-rs", "clap", "assisted"]
    {
        assert!(!names.contains(unwanted), "{unwanted}");
    }
}
