//! The one table of what a config may hold: it drives reading, merging, translating and the search for duplicates.
//!
//! Fields stand in the order in which they are written. A field that came with a later spec version says so; in an
//! earlier one it is an unknown key.

use crate::spec::Spec;

/// An object of the specification.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) name: Name,
    pub(crate) fields: &'static [Field],
    /// Fields that the merge replaces as one where the child sets any of them and they are plain.
    pub(crate) joined: &'static [&'static str],
}

/// What an object is, for the rules that hold for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Config,
    Section,
    IgnitionConfig,
    Tls,
    Proxy,
    Resource,
    Verification,
    Header,
    Storage,
    Disk,
    Partition,
    Raid,
    Filesystem,
    Owner,
    File,
    Directory,
    Link,
    Luks,
    Clevis,
    Custom,
    Tang,
    Systemd,
    Unit,
    Dropin,
    User,
    Group,
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) since: Spec,
    /// The last version in which the field is a plain value: absent means empty, and empty overrides.
    plain_until: Option<Spec>,
    /// Lists of one object with the same group share their keys.
    pub(crate) group: Option<&'static str>,
    pub(crate) kind: Kind,
}

/// What a field holds.
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    Integer,
    Boolean,
    Struct(&'static Struct),
    List(Item, Key),
}

/// What a list holds.
#[derive(Debug)]
pub(crate) enum Item {
    Text,
    Struct(&'static Struct),
}

/// What tells the entries of a list apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    /// Nothing: the merge appends.
    None,
    /// The text itself.
    Itself,
    /// A text field.
    Field(&'static str),
    /// The name, and a child's entry without a value deletes the parent's.
    Header,
    /// The number, else the label.
    Partition,
}

impl Struct {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, since: Spec::OLDEST, plain_until: None, group: None, kind }
    }

    const fn since(mut self, spec: Spec) -> Self {
        self.since = spec;
        self
    }

    const fn plain(self) -> Self {
        self.plain_until(Spec::LATEST)
    }

    const fn plain_until(mut self, spec: Spec) -> Self {
        self.plain_until = Some(spec);
        self
    }

    const fn group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    pub(crate) fn is_plain(&self, spec: Spec) -> bool {
        self.plain_until.is_some_and(|last| spec <= last)
    }
}

const fn text(name: &'static str) -> Field {
    Field::new(name, Kind::Text)
}
const fn integer(name: &'static str) -> Field {
    Field::new(name, Kind::Integer)
}
const fn boolean(name: &'static str) -> Field {
    Field::new(name, Kind::Boolean)
}
const fn object(name: &'static str, schema: &'static Struct) -> Field {
    Field::new(name, Kind::Struct(schema))
}
const fn texts(name: &'static str, key: Key) -> Field {
    Field::new(name, Kind::List(Item::Text, key))
}
const fn list(name: &'static str, schema: &'static Struct, key: &'static str) -> Field {
    Field::new(name, Kind::List(Item::Struct(schema), Key::Field(key)))
}
const fn is(name: Name, fields: &'static [Field]) -> Struct {
    Struct { name, fields, joined: &[] }
}

/// The whole config.
pub(crate) static CONFIG: Struct = is(
    Name::Config,
    &[
        object("ignition", &IGNITION),
        object("kernelArguments", &KERNEL_ARGUMENTS).since(Spec::V3_3),
        object("passwd", &PASSWD),
        object("storage", &STORAGE),
        object("systemd", &SYSTEMD),
    ],
);

static IGNITION: Struct = is(
    Name::Section,
    &[
        object("config", &IGNITION_CONFIG),
        object("proxy", &PROXY).since(Spec::V3_1),
        object("security", &SECURITY),
        object("timeouts", &TIMEOUTS),
        text("version").plain(),
    ],
);
static IGNITION_CONFIG: Struct =
    is(Name::IgnitionConfig, &[list("merge", &REFERENCE, "source"), object("replace", &REFERENCE)]);
static PROXY: Struct =
    is(Name::Proxy, &[text("httpProxy"), text("httpsProxy"), texts("noProxy", Key::Itself)]);
static SECURITY: Struct = is(Name::Section, &[object("tls", &TLS)]);
static TLS: Struct = is(Name::Tls, &[list("certificateAuthorities", &AUTHORITY, "source")]);
static TIMEOUTS: Struct = is(Name::Section, &[integer("httpResponseHeaders"), integer("httpTotal")]);

/// Contents of a file or a key.
static RESOURCE: Struct = is(
    Name::Resource,
    &[text("compression"), HEADERS, text("source"), object("verification", &VERIFICATION)],
);
/// A config, which could not be compressed at first.
static REFERENCE: Struct = is(
    Name::Resource,
    &[text("compression").since(Spec::V3_1), HEADERS, text("source"), object("verification", &VERIFICATION)],
);
/// An authority, which could not be compressed either, and had to say where it is.
static AUTHORITY: Struct = is(
    Name::Resource,
    &[
        text("compression").since(Spec::V3_1),
        HEADERS,
        text("source").plain_until(Spec::V3_0),
        object("verification", &VERIFICATION),
    ],
);
const HEADERS: Field =
    Field::new("httpHeaders", Kind::List(Item::Struct(&HEADER), Key::Header)).since(Spec::V3_1);
static VERIFICATION: Struct = is(Name::Verification, &[text("hash")]);
static HEADER: Struct = is(Name::Header, &[text("name").plain(), text("value")]);

static KERNEL_ARGUMENTS: Struct = is(
    Name::Section,
    &[
        texts("shouldExist", Key::Itself).group("argument"),
        texts("shouldNotExist", Key::Itself).group("argument"),
    ],
);

static PASSWD: Struct = is(Name::Section, &[list("groups", &GROUP, "name"), list("users", &USER, "name")]);
static GROUP: Struct = is(
    Name::Group,
    &[
        integer("gid"),
        text("name").plain(),
        text("passwordHash"),
        boolean("shouldExist").since(Spec::V3_2),
        boolean("system"),
    ],
);
static USER: Struct = is(
    Name::User,
    &[
        text("gecos"),
        texts("groups", Key::Itself),
        text("homeDir"),
        text("name").plain(),
        boolean("noCreateHome"),
        boolean("noLogInit"),
        boolean("noUserGroup"),
        text("passwordHash"),
        text("primaryGroup"),
        text("shell"),
        boolean("shouldExist").since(Spec::V3_2),
        texts("sshAuthorizedKeys", Key::Itself),
        boolean("system"),
        integer("uid"),
    ],
);

static STORAGE: Struct = is(
    Name::Storage,
    &[
        list("directories", &DIRECTORY, "path").group("path"),
        list("disks", &DISK, "device"),
        list("files", &FILE, "path").group("path"),
        list("filesystems", &FILESYSTEM, "device"),
        list("links", &LINK, "path").group("path"),
        list("luks", &LUKS, "name").since(Spec::V3_2),
        list("raid", &RAID, "name"),
    ],
);
static OWNER: Struct = is(Name::Owner, &[integer("id"), text("name")]);
static DIRECTORY: Struct = is(
    Name::Directory,
    &[
        object("group", &OWNER),
        integer("mode"),
        boolean("overwrite"),
        text("path").plain(),
        object("user", &OWNER),
    ],
);
static FILE: Struct = is(
    Name::File,
    &[
        Field::new("append", Kind::List(Item::Struct(&RESOURCE), Key::None)),
        object("contents", &RESOURCE),
        object("group", &OWNER),
        integer("mode"),
        boolean("overwrite"),
        text("path").plain(),
        object("user", &OWNER),
    ],
);
static LINK: Struct = Struct {
    name: Name::Link,
    joined: &["hard", "target"],
    fields: &[
        object("group", &OWNER),
        boolean("hard"),
        boolean("overwrite"),
        text("path").plain(),
        text("target").plain_until(Spec::V3_2),
        object("user", &OWNER),
    ],
};
static DISK: Struct = is(
    Name::Disk,
    &[
        text("device").plain(),
        Field::new("partitions", Kind::List(Item::Struct(&PARTITION), Key::Partition)),
        boolean("wipeTable"),
    ],
);
static PARTITION: Struct = is(
    Name::Partition,
    &[
        text("guid"),
        text("label"),
        integer("number"),
        boolean("resize").since(Spec::V3_2),
        boolean("shouldExist"),
        integer("sizeMiB"),
        integer("startMiB"),
        text("typeGuid"),
        boolean("wipePartitionEntry"),
    ],
);
static FILESYSTEM: Struct = is(
    Name::Filesystem,
    &[
        text("device").plain(),
        text("format"),
        text("label"),
        texts("mountOptions", Key::None).since(Spec::V3_1),
        texts("options", Key::None),
        text("path"),
        text("uuid"),
        boolean("wipeFilesystem"),
    ],
);
static RAID: Struct = is(
    Name::Raid,
    &[
        texts("devices", Key::Itself),
        text("level").plain_until(Spec::V3_2),
        text("name").plain(),
        texts("options", Key::None),
        integer("spares"),
    ],
);
static LUKS: Struct = is(
    Name::Luks,
    &[
        object("cex", &CEX).since(Spec::V3_5),
        object("clevis", &CLEVIS),
        text("device"),
        boolean("discard").since(Spec::V3_4),
        object("keyFile", &RESOURCE),
        text("label"),
        text("name").plain(),
        texts("openOptions", Key::Itself).since(Spec::V3_4),
        texts("options", Key::None),
        text("uuid"),
        boolean("wipeVolume"),
    ],
);
static CEX: Struct = is(Name::Section, &[boolean("enabled")]);
static CLEVIS: Struct = is(
    Name::Clevis,
    &[object("custom", &CUSTOM), list("tang", &TANG, "url"), integer("threshold"), boolean("tpm2")],
);
static CUSTOM: Struct = is(
    Name::Custom,
    &[text("config").plain_until(Spec::V3_2), boolean("needsNetwork"), text("pin").plain_until(Spec::V3_2)],
);
static TANG: Struct =
    is(Name::Tang, &[text("advertisement").since(Spec::V3_4), text("thumbprint"), text("url").plain()]);

static SYSTEMD: Struct = is(Name::Systemd, &[list("units", &UNIT, "name")]);
static UNIT: Struct = is(
    Name::Unit,
    &[
        text("contents"),
        list("dropins", &DROPIN, "name"),
        boolean("enabled"),
        boolean("mask"),
        text("name").plain(),
    ],
);
static DROPIN: Struct = is(Name::Dropin, &[text("contents"), text("name").plain()]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::config::{self, Warning};
    use crate::document::Document;

    /// An object with all fields of all versions.
    fn full(schema: &Struct) -> Value {
        let fields = schema.fields.iter().map(|field| (field.name.to_owned(), value(&field.kind)));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    fn value(kind: &Kind) -> Value {
        match kind {
            Kind::Text => json!("a"),
            Kind::Integer => json!(1),
            Kind::Boolean => json!(true),
            Kind::Struct(schema) => full(schema),
            Kind::List(Item::Text, _) => json!(["a"]),
            Kind::List(Item::Struct(schema), _) => json!([full(schema)]),
        }
    }

    /// Types that were made from Ignition's own JSON schemas.
    #[test]
    fn the_types_of_every_version_know_the_same_fields() {
        for spec in Spec::ALL {
            let mut config = full(&CONFIG);
            config["ignition"]["version"] = spec.as_str().into();
            let text = config.to_string();
            let ours = Document::parse(text.as_bytes()).unwrap();
            let unknown: BTreeSet<String> =
                ours.warnings.findings().iter().map(|finding| finding.pointer.clone()).collect();
            let theirs = config::parse(text.as_bytes()).unwrap().warnings;
            let unused: BTreeSet<String> = theirs
                .iter()
                .map(|warning| match warning {
                    Warning::UnusedKey(path) => path.trim_start_matches('$').replace('.', "/"),
                    Warning::Other(text) => panic!("{text}"),
                })
                .collect();
            assert_eq!(unknown, unused, "{spec}");
            assert_eq!(unknown.is_empty(), spec >= Spec::V3_5);
            assert_eq!(Document::try_from(&ours.document.to_config().unwrap()).unwrap(), ours.document);
        }
    }

    #[test]
    fn fields_have_one_order() {
        fn check(schema: &Struct) {
            assert!(schema.fields.is_sorted_by_key(|field| field.name), "{:?}", schema.name);
            for field in schema.fields {
                if let Kind::Struct(schema) | Kind::List(Item::Struct(schema), _) = field.kind {
                    check(schema);
                }
            }
        }
        check(&CONFIG);
    }
}
