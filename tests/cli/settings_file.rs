//! Options of the server in a file.

use crate::serve::Server;
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
fn a_file_says_what_nothing_else_does() {
    let scratch = Scratch::new();
    scratch.write("kindling.toml", SETTINGS);
    let start = |arguments: &[&str], data_dir: Option<&str>| {
        let mut run = scratch.command(["serve"].iter().chain(arguments));
        if let Some(directory) = data_dir {
            run = run.env("KINDLING_DATA_DIR", directory);
        }
        Server::spawn(run.command(), 1).end()
    };
    let log = start(&["--config", "kindling.toml"], None);
    assert!(log.starts_with('{') && log.contains("options are read from a file"), "{log}");
    assert!(scratch.path("from-file/kindling.db").exists());
    start(&["--config=kindling.toml"], Some("from-variable"));
    assert!(scratch.path("from-variable/kindling.db").exists());
    let log =
        start(&["--config", "kindling.toml", "--data-dir", "given", "--log-format", "text"], Some("other"));
    assert!(scratch.path("given/kindling.db").exists() && !scratch.path("other").exists());
    assert!(!log.starts_with('{'), "{log}");
}

#[test]
fn the_environment_may_name_the_file() {
    let scratch = Scratch::new();
    let path = scratch.write("kindling.toml", SETTINGS);
    Server::spawn(scratch.command(["serve"]).env("KINDLING_CONFIG", path).command(), 1).end();
    assert!(scratch.path("from-file/kindling.db").exists());
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_name() {
    let scratch = Scratch::new();
    for (text, phrase) in [
        ("listne = []", "`listne` is no option"),
        ("listen = [1.5]", "`listen` has a value that no option has"),
        ("[listen]\na = 1", "`listen` has a value that no option has"),
        ("config = \"other.toml\"", "`config`"),
        ("listen = \"nowhere\"", "the value is that of kindling.toml"),
        ("a = = 1", "line 1"),
        ("listen = [\"127.0.0.1:0\"]\nlisten = []", "line 2"),
    ] {
        scratch.write("kindling.toml", text);
        let output = scratch.kindling("serve --config kindling.toml");
        output.usage(phrase);
        output.usage("kindling.toml");
        assert!(!scratch.has("kindling.db"));
    }
    scratch.kindling("serve --config missing.toml").usage("missing.toml: No such file");
}
