//! Random configs with all fields. They have few names, so that parent and child often share entries.

#![allow(dead_code, reason = "no test program needs all of it")]

use ignition::config::Config;
use ignition::spec::Spec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// The shape of random configs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The prefix of all names in the config.
    pub(crate) prefix: &'static str,
    /// Whether two configs may have the same keys in lists with keys.
    pub(crate) crossing: bool,
    /// Whether the config may contain HTTP headers.
    pub(crate) headers: bool,
}

impl Shape {
    pub(crate) const ANY: Self = Self { prefix: "", crossing: true, headers: true };

    fn names(self, pattern: &str) -> Vec<String> {
        (1..=4).map(|number| pattern.replace('*', &format!("{}{number}", self.prefix))).collect()
    }
}

type Json = BoxedStrategy<Value>;

/// Generates a random config of a spec version. Fields that the version does not have are omitted.
pub(crate) fn any_config(specs: Vec<Spec>, shape: Shape) -> impl Strategy<Value = Config> {
    (select(specs), config(shape)).prop_map(|(spec, mut config)| {
        config["ignition"]["version"] = spec.as_str().into();
        Config::parse(config.to_string().as_bytes()).unwrap().config
    })
}

fn config(shape: Shape) -> Json {
    object([
        ("ignition", ignition(shape)),
        ("kernelArguments", arguments(shape)),
        ("passwd", passwd(shape)),
        ("storage", storage(shape)),
        ("systemd", object([("units", list(shape.names("u*.service"), "name", unit(shape)))])),
    ])
}

/// Generates an object that contains each of its fields with a probability of one half.
fn object<const N: usize>(fields: [(&'static str, Json); N]) -> Json {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let values: Vec<_> = values.into_iter().map(proptest::option::of).collect();
    values
        .prop_map(move |values| {
            let fields =
                names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
            Value::Object(fields.collect())
        })
        .boxed()
}

fn any_of(values: Vec<Value>) -> Json {
    select(values).boxed()
}

fn texts(values: &[&str]) -> Json {
    any_of(values.iter().map(|text| json!(text)).collect())
}

fn boolean() -> Json {
    any::<bool>().prop_map(Value::from).boxed()
}

fn small() -> Json {
    (0..4_i64).prop_map(Value::from).boxed()
}

/// Generates a subset of the names, in any order.
fn set(names: Vec<String>) -> Json {
    let len = names.len();
    subsequence(names, 0..=len).prop_shuffle().prop_map(Value::from).boxed()
}

/// Generates entries for a subset of the names, in any order.
fn list(names: Vec<String>, key: &'static str, entry: Json) -> Json {
    let len = names.len();
    let entries = (subsequence(names, 0..=len).prop_shuffle(), vec(entry, len));
    let with_names = move |(names, entries): (Vec<String>, Vec<Value>)| -> Value {
        let entry = |(name, mut entry): (String, Value)| {
            entry[key] = name.into();
            entry
        };
        names.into_iter().zip(entries).map(entry).collect()
    };
    entries.prop_map(with_names).boxed()
}

fn ignition(shape: Shape) -> Json {
    object([
        (
            "proxy",
            object([
                ("httpProxy", texts(&["http://a:1", "https://b"])),
                ("httpsProxy", texts(&["http://a:1", "https://b"])),
                ("noProxy", set(shape.names("n*"))),
            ]),
        ),
        ("timeouts", object([("httpResponseHeaders", small()), ("httpTotal", small())])),
    ])
}

fn arguments(shape: Shape) -> Json {
    let [yes, no] = if shape.crossing { ["k*", "k*"] } else { ["y*", "n*"] };
    object([("shouldExist", set(shape.names(yes))), ("shouldNotExist", set(shape.names(no)))])
        .prop_map(|mut arguments| {
            // A config must not have an argument in both lists.
            let required = arguments["shouldExist"].as_array().cloned().unwrap_or_default();
            if let Some(forbidden) = arguments["shouldNotExist"].as_array_mut() {
                forbidden.retain(|argument| !required.contains(argument));
            }
            arguments
        })
        .boxed()
}

fn passwd(shape: Shape) -> Json {
    let user = object([
        ("gecos", texts(&["", "a"])),
        ("groups", set(shape.names("g*"))),
        ("homeDir", texts(&["/a", "/b"])),
        ("noCreateHome", boolean()),
        ("passwordHash", texts(&["!", "*"])),
        ("shouldExist", boolean()),
        ("sshAuthorizedKeys", set(shape.names("ssh-ed25519 *"))),
        ("uid", small()),
    ]);
    let group = object([("gid", small()), ("shouldExist", boolean()), ("system", boolean())]);
    object([
        ("groups", list(shape.names("g*"), "name", group)),
        ("users", list(shape.names("u*"), "name", user)),
    ])
}

/// Generates random users and groups that can be created on the prepared [`accounts`](crate::accounts). Every number
/// belongs to one account, and groups are new.
pub(crate) fn makeable_passwd() -> Json {
    let user = |name: &'static str, uid: u32| {
        object([
            ("gecos", texts(&["", "A B"])),
            ("groups", set(["sudo", "wheel", "adm"].map(str::to_owned).to_vec())),
            (
                "homeDir",
                any_of(vec!["".into(), format!("/srv/{name}").into(), format!("/opt/{name}").into()]),
            ),
            ("noUserGroup", boolean()),
            ("passwordHash", texts(&["", "!", "$6$salt$hash"])),
            ("primaryGroup", texts(&["", "adm"])),
            ("shell", texts(&["", "/bin/sh"])),
            ("shouldExist", any_of(vec![true.into(), true.into(), false.into()])),
            (
                "sshAuthorizedKeys",
                set(["ssh-ed25519 AA", "ssh-rsa BB", "ssh-dss CC"].map(str::to_owned).to_vec()),
            ),
            ("system", boolean()),
            ("uid", any_of(vec![uid.into(), (uid + 10).into()])),
        ])
        .prop_map(move |mut user| {
            user["name"] = name.into();
            user
        })
    };
    let users = (user("core", 1500), user("guest", 1501), user("new", 1502), user("newer", 1503));
    let users = users.prop_map(|(a, b, c, d)| vec![a, b, c, d]);
    let users = users.prop_flat_map(|users| subsequence(users, 0..=4)).prop_shuffle().prop_map(Value::from);
    let group = object([
        ("gid", any_of(vec![1400.into(), 1401.into()])),
        ("passwordHash", texts(&["", "x"])),
        ("shouldExist", boolean()),
        ("system", boolean()),
    ]);
    object([("groups", list(vec!["fresh".to_owned()], "name", group)), ("users", users.boxed())])
}

fn contents(shape: Shape) -> Json {
    let data = ["", "data:,a", "data:,%20", "data:;base64,aGk="];
    let hash = format!("sha512-{}", "0".repeat(128));
    let inline = object([("source", texts(&data)), ("compression", texts(&[""]))]);
    let header = object([("value", texts(&["a", "b"]))]);
    let names = if shape.headers { shape.names("H*") } else { Vec::new() };
    let fetched =
        object([("httpHeaders", list(names, "name", header)), ("compression", texts(&["", "gzip"]))]);
    let fetched = (fetched, texts(&["http://x/a", "https://x/b"]), any::<bool>()).prop_map(
        move |(mut contents, source, is_hashed)| {
            contents["source"] = source;
            if is_hashed {
                contents["verification"] = json!({"hash": hash});
            }
            contents
        },
    );
    prop_oneof![inline, fetched].boxed()
}

fn storage(shape: Shape) -> Json {
    let owner = object([("id", small())]);
    let names = |own: &str| shape.names(if shape.crossing { "/x*" } else { own });
    let file = object([
        ("append", vec(contents(shape), 0..3).prop_map(Value::from).boxed()),
        ("contents", contents(shape)),
        ("mode", any_of([0, 0o600, 0o4755].map(Value::from).to_vec())),
        ("overwrite", boolean()),
        ("user", owner.clone()),
    ]);
    let directory =
        object([("mode", any_of(vec![json!(0o755)])), ("overwrite", boolean()), ("group", owner)]);
    let link = object([("hard", boolean()), ("target", texts(&["/t1", "/t2"])), ("overwrite", boolean())]);
    object([
        ("directories", list(names("/d*"), "path", directory)),
        ("disks", list(shape.names("/dev/d*"), "device", disk(shape))),
        ("files", list(names("/f*"), "path", file)),
        ("filesystems", list(shape.names("/dev/f*"), "device", filesystem())),
        ("links", list(names("/l*"), "path", link)),
        ("luks", list(shape.names("l*"), "name", luks(shape))),
        ("raid", list(shape.names("r*"), "name", raid(shape))),
    ])
    .prop_map(without_repeated_paths)
    .boxed()
}

/// Removes nodes so that no two nodes have the same path, which would be invalid.
fn without_repeated_paths(mut storage: Value) -> Value {
    let mut paths = Vec::new();
    for kind in ["directories", "files", "links"] {
        if let Some(nodes) = storage[kind].as_array_mut() {
            nodes.retain(|node| !paths.contains(&node["path"]));
            paths.extend(nodes.iter().map(|node| node["path"].clone()));
        }
    }
    storage
}

fn disk(shape: Shape) -> Json {
    let partition = object([
        ("sizeMiB", small()),
        ("startMiB", any_of(vec![json!(0)])),
        ("guid", texts(&["", "0FC63DAF-8483-4772-8E79-3D69D8477DE4"])),
        ("resize", boolean()),
        ("wipePartitionEntry", boolean()),
    ]);
    let partitions = list(shape.names("p*"), "label", partition);
    object([("partitions", partitions), ("wipeTable", boolean())])
}

fn filesystem() -> Json {
    object([
        ("label", texts(&["", "a"])),
        ("mountOptions", list_of(&["m1", "m2"])),
        ("options", list_of(&["-a", "-b"])),
        ("path", texts(&["/a", "/b"])),
        ("wipeFilesystem", boolean()),
    ])
    .prop_flat_map(|filesystem| {
        texts(&["xfs", "ext4", "vfat"]).prop_map(move |format| {
            let mut filesystem = filesystem.clone();
            filesystem["format"] = format;
            filesystem
        })
    })
    .boxed()
}

fn list_of(values: &[&str]) -> Json {
    vec(texts(values), 0..3).prop_map(Value::from).boxed()
}

fn raid(shape: Shape) -> Json {
    let optional = object([("options", list_of(&["-a"])), ("spares", small())]);
    let devices = shape.names("/dev/d*");
    let devices = subsequence(devices, 1..=4).prop_shuffle();
    (optional, devices, select(&["raid1", "raid5", "raid10"][..]))
        .prop_map(|(mut raid, devices, level)| {
            raid["devices"] = devices.into();
            raid["level"] = level.into();
            raid
        })
        .boxed()
}

fn luks(shape: Shape) -> Json {
    let tang = any_of(vec![json!({"thumbprint": "a"}), json!({"thumbprint": "b"})]);
    let servers = list(shape.names("http://t*"), "url", tang);
    let clevis = object([("tang", servers), ("threshold", small()), ("tpm2", boolean())]);
    let optional = object([
        ("clevis", clevis),
        ("discard", boolean()),
        ("keyFile", any_of(vec![json!({"source": "data:,k"})])),
        ("label", texts(&["a", "b"])),
        ("openOptions", set(shape.names("-o*"))),
        ("options", list_of(&["-a", "-b"])),
        ("wipeVolume", boolean()),
    ]);
    (optional, select(&["/dev/a", "/dev/b"][..]))
        .prop_map(|(mut luks, device)| {
            luks["device"] = device.into();
            luks
        })
        .boxed()
}

fn unit(shape: Shape) -> Json {
    let text = ["", "[Unit]\nA=b\n", "[Service]\nA=b\n[Install]\nWantedBy=x\n"];
    let dropin = object([("contents", texts(&text))]);
    object([
        ("contents", texts(&text)),
        ("dropins", list(shape.names("d*.conf"), "name", dropin)),
        ("enabled", boolean()),
        ("mask", boolean()),
    ])
}
