//! Tests `kindling serve` with its options in a file.

use crate::serve::ServeProcess;
use crate::support::Scratch;

const SETTINGS: &str = r#"
listen = ["127.0.0.1:0"]
data-dir = "from-file"
auth-type = "none"
max-concurrent-requests = 100
prune-images = true
log-format = "json"
os-images = '[{"openshift_version": "4.18", "url": "file:///none", "version": "418.1", "cpu_architecture": "x86_64"}]'
"#;

#[test]
fn settings_file_has_the_lowest_precedence() {
    let scratch = Scratch::new();
    scratch.write("kindling.toml", SETTINGS);
    let start = |arguments: &[&str], data_dir: Option<&str>| {
        let mut run = scratch.command(["serve"].iter().chain(arguments));
        if let Some(directory) = data_dir {
            run = run.env("KINDLING_DATA_DIR", directory);
        }
        ServeProcess::spawn(run.command(), 1).stop()
    };
    let log = start(&["--config", "kindling.toml"], None);
    assert!(log.starts_with('{') && log.contains("options read from file"), "{log}");
    assert!(scratch.path("from-file/kindling.db").exists());
    start(&["--config=kindling.toml"], Some("from-variable"));
    assert!(scratch.path("from-variable/kindling.db").exists());
    let log =
        start(&["--config", "kindling.toml", "--data-dir", "given", "--log-format", "text"], Some("other"));
    assert!(scratch.path("given/kindling.db").exists() && !scratch.path("other").exists());
    assert!(!log.starts_with('{'), "{log}");
}

#[test]
fn settings_file_is_named_by_a_variable() {
    let scratch = Scratch::new();
    let path = scratch.write("kindling.toml", SETTINGS);
    ServeProcess::spawn(scratch.command(["serve"]).env("KINDLING_CONFIG", path).command(), 1).stop();
    assert!(scratch.path("from-file/kindling.db").exists());
}

#[test]
fn errors_in_a_settings_file_name_the_file() {
    let scratch = Scratch::new();
    for (text, phrase) in [
        ("listne = []", "`listne` is not an option of `kindling serve`; did you mean `listen`?"),
        ("data_dir = \"x\"", "did you mean `data-dir`?"),
        ("unrelated = 1", "`unrelated` is not an option of `kindling serve`\n"),
        ("listen = [1.5]", "`listen`: unsupported value type"),
        ("[listen]\na = 1", "`listen`: unsupported value type"),
        ("config = \"other.toml\"", "`config`"),
        ("listen = \"nowhere\"", "the value comes from kindling.toml"),
        ("a = = 1", "not valid TOML at line 1, column 5"),
        ("listen = [\"127.0.0.1:0\"]\nlisten = []", "line 2"),
        ("db-pass = \"secret", "not valid TOML at line 1"),
    ] {
        scratch.write("kindling.toml", text);
        let output = scratch.run_kindling("serve --config kindling.toml");
        output.expect_usage_error(phrase);
        output.expect_usage_error("kindling.toml");
        assert!(!scratch.has_file("kindling.db"));
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
    scratch.run_kindling("serve --config missing.toml").expect_usage_error("missing.toml: No such file");
}
