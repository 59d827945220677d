//! The examples at the end of help texts.

use clap::Command;

/// The heading of the examples in a help text.
pub(super) const HEADING: &str = "Examples:";
/// The program name in [`EXAMPLES`].
const PROGRAM: &str = "kindling";

/// The commands, without the program name, and their examples.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "kindling iso ignition embed -i config.ign -o custom.iso base.iso",
            "kindling discovery create --manifests site/ --base base.iso \\\n\
             \x20   --service-url https://assisted.example.com:8090 --full discovery.iso",
            "kindling serve --os-images-file os-images.json",
        ],
    ),
    (
        "iso customize",
        &[
            "kindling iso customize --dest-device /dev/sda --dest-ignition config.ign \\\n\
             \x20   -o custom.iso base.iso",
            "kindling iso customize --live-ignition config.ign \\\n\
             \x20   --network-keyfile eth0.nmconnection -o custom.iso base.iso",
        ],
    ),
    (
        "iso ignition embed",
        &[
            "kindling iso ignition embed -i config.ign -o custom.iso base.iso",
            "kindling iso ignition embed --grow -i large.ign -o custom.iso base.iso",
        ],
    ),
    ("iso ignition show", &["kindling iso ignition show custom.iso"]),
    (
        "iso ignition remove",
        &[
            "kindling iso ignition remove custom.iso",
            "kindling iso ignition remove -o without-config.iso custom.iso",
        ],
    ),
    (
        "iso kargs modify",
        &[
            "kindling iso kargs modify -a console=ttyS0 -o custom.iso base.iso",
            "kindling iso kargs modify -d console=ttyS0 -a console=ttyS1 custom.iso",
        ],
    ),
    ("iso kargs reset", &["kindling iso kargs reset custom.iso"]),
    (
        "iso kargs show",
        &["kindling iso kargs show custom.iso", "kindling iso kargs show --default custom.iso"],
    ),
    ("iso network embed", &["kindling iso network embed -k eth0.nmconnection -o custom.iso base.iso"]),
    ("iso network extract", &["kindling iso network extract -C keyfiles custom.iso"]),
    ("iso network remove", &["kindling iso network remove custom.iso"]),
    (
        "iso extract minimal-iso",
        &["kindling iso extract minimal-iso --rootfs-url http://192.0.2.1/rootfs.img \\\n\
             \x20   --output-rootfs rootfs.img base.iso minimal.iso"],
    ),
    ("iso extract pxe", &["kindling iso extract pxe -o pxe base.iso"]),
    ("iso extract nmstatectl", &["kindling iso extract nmstatectl -o nmstatectl.img base.iso"]),
    ("iso inspect", &["kindling iso inspect custom.iso", "kindling iso inspect --base base.iso custom.iso"]),
    ("iso diff", &["kindling iso diff base.iso custom.iso"]),
    ("iso verify", &["kindling iso verify base.iso", "kindling iso verify --plan site.plan discovery.iso"]),
    ("iso reset", &["kindling iso reset custom.iso"]),
    (
        "pxe customize",
        &["kindling pxe customize --dest-device /dev/sda --dest-ignition config.ign \\\n\
             \x20   -o custom-initrd.img initrd.img"],
    ),
    ("pxe ignition wrap", &["kindling pxe ignition wrap -i config.ign -o ignition.img"]),
    ("pxe ignition unwrap", &["kindling pxe ignition unwrap ignition.img"]),
    ("pxe network wrap", &["kindling pxe network wrap -k eth0.nmconnection -o network.img"]),
    ("pxe network unwrap", &["kindling pxe network unwrap -C keyfiles network.img"]),
    (
        "ignition validate",
        &["kindling ignition validate config.ign", "kindling ignition validate --strict --json config.ign"],
    ),
    ("ignition merge", &["kindling ignition merge --pretty -o merged.ign config.ign override.ign"]),
    ("ignition show", &["kindling ignition show config.ign"]),
    ("network check", &["kindling network check hosts.yaml"]),
    ("network keyfiles", &["kindling network keyfiles -o keyfiles hosts.yaml"]),
    (
        "discovery create",
        &[
            "kindling discovery create --manifests site/ --base base.iso \\\n\
             \x20   --service-url https://assisted.example.com:8090 --full discovery.iso",
            "kindling discovery create --base base.iso --openshift-version 4.18 \\\n\
             \x20   --infra-env-id 0f2a5d3c-1111-4222-8333-444455556666 \\\n\
             \x20   --pull-secret pull-secret.json --network hosts.yaml \\\n\
             \x20   --service-url https://assisted.example.com:8090 --per-host hosts \\\n\
             \x20   --rootfs-url http://192.0.2.1/rootfs.img",
        ],
    ),
    (
        "discovery plan",
        &["kindling discovery plan --manifests site/ --base base.iso \\\n\
             \x20   --service-url https://assisted.example.com:8090 -o site.plan"],
    ),
    ("discovery apply", &["kindling discovery apply base.iso site.plan -o discovery.iso"]),
    (
        "infra-env create",
        &[
            "kindling infra-env create edge --openshift-version 4.18 \\\n\
             \x20   --pull-secret pull-secret.json --ssh-key id_ed25519.pub",
            "kindling infra-env create rack7 --openshift-version 4.18 --arch arm64 \\\n\
             \x20   --pull-secret pull-secret.json --network hosts.yaml",
            "kindling infra-env create --manifests site/ \\\n\
             \x20   --url https://assisted.example.com:8090 --ca ca.pem",
        ],
    ),
    ("infra-env list", &["kindling infra-env list", "kindling infra-env list --json"]),
    ("infra-env show", &["kindling infra-env show edge", "kindling infra-env show --json edge"]),
    ("infra-env hosts", &["kindling infra-env hosts edge", "kindling infra-env hosts --json edge"]),
    (
        "serve",
        &[
            "kindling serve --os-images '[{\"openshift_version\": \"4.20\",\n\
             \x20   \"cpu_architecture\": \"x86_64\", \"version\": \"9.6.20251023-0\",\n\
             \x20   \"url\": \"file:///srv/rhcos-live.iso\"}]'",
            "kindling serve --listen 0.0.0.0:8090 \\\n\
             \x20   --service-base-url http://kindling.example.com:8090 \\\n\
             \x20   --auth-type local --ec-private-key-file keys/ec-private-key.pem \\\n\
             \x20   --os-images-file os-images.json",
        ],
    ),
    ("demo", &["kindling demo", "kindling demo --hosts 20 --listen 127.0.0.1:8091"]),
    ("fixture", &["kindling fixture x86_64 2024-12 base.iso"]),
    (
        "simulate",
        &[
            "kindling simulate --infra-env 0f2a5d3c-1111-4222-8333-444455556666",
            "kindling simulate --infra-env 0f2a5d3c-1111-4222-8333-444455556666 \\\n\
             \x20   --hosts 1000 --fault slow-disk=10% --duration 5m --json",
            "kindling simulate --infra-env 0f2a5d3c-1111-4222-8333-444455556666 \\\n\
             \x20   --duration 1m --explain",
        ],
    ),
    (
        "doctor",
        &[
            "kindling doctor http://192.0.2.1:8090/full.iso",
            "kindling doctor --client bmc --ca ca.pem https://images.example.com/full.iso",
        ],
    ),
    (
        "boot-test",
        &[
            "kindling boot-test custom.iso",
            "kindling boot-test --firmware uefi --media http http://127.0.0.1:8090/full.iso",
        ],
    ),
    ("auth keys", &["kindling auth keys --out keys"]),
    (
        "auth token",
        &[
            "kindling auth token --user --ec-private-key-file keys/ec-private-key.pem",
            "kindling auth token --infra-env 0f2a5d3c-1111-4222-8333-444455556666 \\\n\
             \x20   --ec-private-key-file keys/ec-private-key.pem",
        ],
    ),
    ("crd", &["kindling crd | kubectl apply -f -", "kindling crd InfraEnv Agent > crds.yaml"]),
    (
        "completions",
        &[
            "kindling completions bash > /etc/bash_completion.d/kindling",
            "kindling completions zsh > /usr/share/zsh/site-functions/_kindling",
            "kindling completions fish > ~/.config/fish/completions/kindling.fish",
        ],
    ),
    ("man", &["kindling man /usr/local/share/man/man1"]),
];

/// Adds the examples to the help texts of a program and of all its commands.
pub(super) fn add_examples(program: Command) -> Command {
    let name = program.get_name().to_owned();
    add_to_command(program, "", &name)
}

fn add_to_command(command: Command, path: &str, program: &str) -> Command {
    let command = match EXAMPLES.iter().find(|(of, _)| *of == path) {
        Some((_, examples)) => append_examples(command, examples, program),
        None => command,
    };
    command.mut_subcommands(|command| {
        let path = format!("{path} {}", command.get_name());
        add_to_command(command, path.trim_start(), program)
    })
}

fn append_examples(command: Command, examples: &[&str], program: &str) -> Command {
    let mut text = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    text.push_str(HEADING);
    for example in examples {
        let example = example.strip_prefix(PROGRAM).map(|rest| format!("{program}{rest}"));
        for line in example.iter().flat_map(|example| example.lines()) {
            text.push_str("\n  ");
            text.push_str(line);
        }
    }
    command.after_help(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Splits a command line into words, up to a redirection or a pipe.
    fn split_words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        let line = line.split(" > ").next().unwrap().split(" | ").next().unwrap().replace("\\\n", "");
        for character in line.chars() {
            match character {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                character => words.last_mut().unwrap().push(character),
            }
        }
        assert!(!is_quoted, "{line}");
        words.into_iter().filter(|word| !word.is_empty()).collect()
    }

    /// Returns `true` if the features of this build include the command.
    fn is_built(path: &str) -> bool {
        match path {
            "demo" | "fixture" => cfg!(feature = "demo"),
            "crd" => cfg!(feature = "kube-api"),
            _ => true,
        }
    }

    fn collect_leaves(command: &Command, path: &str, leaves: &mut Vec<String>) {
        if !command.has_subcommands() {
            leaves.push(path.to_owned());
        }
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            collect_leaves(command, format!("{path} {}", command.get_name()).trim_start(), leaves);
        }
    }

    #[test]
    fn every_visible_command_has_one_to_three_examples() {
        let mut leaves = Vec::new();
        collect_leaves(&Cli::command(), "", &mut leaves);
        assert!(leaves.len() > 30, "{leaves:?}");
        for leaf in &leaves {
            let examples = EXAMPLES.iter().find(|(of, _)| of == leaf);
            let (_, examples) = examples.unwrap_or_else(|| panic!("`{leaf}` has no examples"));
            assert!((1..=3).contains(&examples.len()), "{leaf}");
        }
        for (path, _) in EXAMPLES.iter().filter(|(path, _)| is_built(path)) {
            assert!(path.is_empty() || leaves.iter().any(|leaf| leaf == path), "`{path}` is not a command");
        }
    }

    #[test]
    fn examples_parse_and_fit_in_80_columns() {
        for (path, examples) in EXAMPLES.iter().filter(|(path, _)| is_built(path)) {
            for example in *examples {
                assert!(example.starts_with(&format!("kindling {path}")), "{path}: {example}");
                assert!(example.lines().all(|line| line.len() <= 78), "{example}");
                if let Err(error) = Cli::command().try_get_matches_from(split_words(example)) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    #[test]
    fn examples_name_the_program_that_runs() {
        let command = add_examples(Cli::command().name("coreos-installer"));
        let kargs = command.find_subcommand("iso").unwrap().find_subcommand("kargs").unwrap();
        let text = kargs.find_subcommand("reset").unwrap().get_after_help().unwrap().to_string();
        assert_eq!(text, "Examples:\n  coreos-installer iso kargs reset custom.iso");
    }
}
