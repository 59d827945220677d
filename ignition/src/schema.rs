//! The schema of a config: a table of all fields. Parsing, merging, translating, rewriting and the search for
//! duplicates use it.
//!
//! Fields are in the order of the output. A field with a later spec version is an unknown key in earlier versions.

use crate::spec::Spec;

/// An object of the Ignition specification.
#[derive(Debug)]
pub(crate) struct ObjectSchema {
    pub(crate) name: ObjectKind,
    pub(crate) fields: &'static [FieldSchema],
    /// Fields that the merge replaces together: if the child sets one of the fields and they are plain, the merge
    /// replaces all of them.
    pub(crate) merged_as_unit: &'static [&'static str],
}

/// The type of an object, which selects its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
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

#[derive(Debug)]
pub(crate) struct FieldSchema {
    pub(crate) name: &'static str,
    pub(crate) since: Spec,
    /// The last version in which the field is a plain value. For a plain value, absent is the same as empty, and an
    /// empty value of the child overrides the value of the parent.
    plain_until: Option<Spec>,
    /// The exceptional treatment of the unset field by `coreos-installer`, and the last version in which it applies.
    /// `None` if the treatment follows from the type of the field.
    unset_until: Option<(UnsetField, Spec)>,
    /// The group of a list. Lists of an object in the same group share their keys.
    pub(crate) group: Option<&'static str>,
    pub(crate) kind: FieldType,
}

/// The treatment by `coreos-installer` of a config without the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsetField {
    /// `coreos-installer` writes `null`.
    Null,
    /// `coreos-installer` omits the field.
    Omitted,
    /// `coreos-installer` rejects the config.
    Rejected,
}

#[derive(Debug)]
pub(crate) enum FieldType {
    Text,
    Integer,
    Boolean,
    Struct(&'static ObjectSchema),
    List(EntryType, EntryKey),
}

#[derive(Debug)]
pub(crate) enum EntryType {
    Text,
    Struct(&'static ObjectSchema),
}

/// The key by which the merge matches the entries of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryKey {
    /// No key: the merge concatenates the lists.
    None,
    /// The entry itself, which is a text.
    Itself,
    /// The text field with this name.
    Field(&'static str),
    /// The name of an HTTP header. A child's entry without a value deletes the parent's entry.
    Header,
    /// The number of a partition, or its label if it has no number.
    Partition,
}

impl ObjectSchema {
    pub(crate) fn field(&self, name: &str) -> Option<&'static FieldSchema> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl FieldSchema {
    const fn new(name: &'static str, kind: FieldType) -> Self {
        Self { name, since: Spec::OLDEST, plain_until: None, unset_until: None, group: None, kind }
    }

    const fn since(mut self, spec: Spec) -> Self {
        self.since = spec;
        self
    }

    const fn required_scalar(self) -> Self {
        self.plain_until(Spec::LATEST)
    }

    const fn plain_until(mut self, spec: Spec) -> Self {
        self.plain_until = Some(spec);
        self
    }

    const fn unset_until(mut self, unset: UnsetField, spec: Spec) -> Self {
        self.unset_until = Some((unset, spec));
        self
    }

    const fn group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    pub(crate) fn is_plain(&self, spec: Spec) -> bool {
        self.plain_until.is_some_and(|last| spec <= last)
    }

    /// Returns the treatment by `coreos-installer` of a config without the field.
    pub(crate) fn when_unset(&self, spec: Spec) -> UnsetField {
        match (self.unset_until, &self.kind) {
            (Some((unset, last)), _) if spec <= last => unset,
            _ if self.is_plain(spec) => UnsetField::Rejected,
            (_, FieldType::Struct(_) | FieldType::List(..)) => UnsetField::Omitted,
            (_, FieldType::Text | FieldType::Integer | FieldType::Boolean) => UnsetField::Null,
        }
    }
}

const fn text(name: &'static str) -> FieldSchema {
    FieldSchema::new(name, FieldType::Text)
}
const fn integer(name: &'static str) -> FieldSchema {
    FieldSchema::new(name, FieldType::Integer)
}
const fn boolean(name: &'static str) -> FieldSchema {
    FieldSchema::new(name, FieldType::Boolean)
}
const fn object(name: &'static str, schema: &'static ObjectSchema) -> FieldSchema {
    FieldSchema::new(name, FieldType::Struct(schema))
}
const fn texts(name: &'static str, key: EntryKey) -> FieldSchema {
    FieldSchema::new(name, FieldType::List(EntryType::Text, key))
}
const fn list(name: &'static str, schema: &'static ObjectSchema, key: &'static str) -> FieldSchema {
    FieldSchema::new(name, FieldType::List(EntryType::Struct(schema), EntryKey::Field(key)))
}
const fn object_schema(name: ObjectKind, fields: &'static [FieldSchema]) -> ObjectSchema {
    ObjectSchema { name, fields, merged_as_unit: &[] }
}

/// The schema of the whole config.
pub(crate) static CONFIG: ObjectSchema = object_schema(
    ObjectKind::Config,
    &[
        object("ignition", &IGNITION).unset_until(UnsetField::Rejected, Spec::LATEST),
        object("kernelArguments", &KERNEL_ARGUMENTS).since(Spec::V3_3),
        object("passwd", &PASSWD),
        object("storage", &STORAGE),
        object("systemd", &SYSTEMD),
    ],
);

static IGNITION: ObjectSchema = object_schema(
    ObjectKind::Section,
    &[
        object("config", &IGNITION_CONFIG),
        object("proxy", &PROXY).since(Spec::V3_1),
        object("security", &SECURITY),
        object("timeouts", &TIMEOUTS),
        text("version").required_scalar(),
    ],
);
static IGNITION_CONFIG: ObjectSchema = object_schema(
    ObjectKind::IgnitionConfig,
    &[list("merge", &REFERENCE, "source"), object("replace", &REFERENCE)],
);
static PROXY: ObjectSchema = object_schema(
    ObjectKind::Proxy,
    &[text("httpProxy"), text("httpsProxy"), texts("noProxy", EntryKey::Itself)],
);
static SECURITY: ObjectSchema = object_schema(ObjectKind::Section, &[object("tls", &TLS)]);
static TLS: ObjectSchema =
    object_schema(ObjectKind::Tls, &[list("certificateAuthorities", &AUTHORITY, "source")]);
static TIMEOUTS: ObjectSchema =
    object_schema(ObjectKind::Section, &[integer("httpResponseHeaders"), integer("httpTotal")]);

/// The contents of a file or a key.
static RESOURCE: ObjectSchema = object_schema(
    ObjectKind::Resource,
    &[text("compression"), HEADERS, text("source"), object("verification", &VERIFICATION)],
);
/// A reference to a config. Spec 3.0 does not allow compression.
static REFERENCE: ObjectSchema = object_schema(
    ObjectKind::Resource,
    &[text("compression").since(Spec::V3_1), HEADERS, text("source"), object("verification", &VERIFICATION)],
);
/// A certificate authority. Spec 3.0 does not allow compression and requires a source.
static AUTHORITY: ObjectSchema = object_schema(
    ObjectKind::Resource,
    &[
        text("compression").since(Spec::V3_1),
        HEADERS,
        text("source").plain_until(Spec::V3_0),
        object("verification", &VERIFICATION),
    ],
);
const HEADERS: FieldSchema =
    FieldSchema::new("httpHeaders", FieldType::List(EntryType::Struct(&HEADER), EntryKey::Header))
        .since(Spec::V3_1);
static VERIFICATION: ObjectSchema = object_schema(ObjectKind::Verification, &[text("hash")]);
static HEADER: ObjectSchema =
    object_schema(ObjectKind::Header, &[text("name").required_scalar(), text("value")]);

static KERNEL_ARGUMENTS: ObjectSchema = object_schema(
    ObjectKind::Section,
    &[
        texts("shouldExist", EntryKey::Itself).group("argument"),
        texts("shouldNotExist", EntryKey::Itself).group("argument"),
    ],
);

static PASSWD: ObjectSchema =
    object_schema(ObjectKind::Section, &[list("groups", &GROUP, "name"), list("users", &USER, "name")]);
static GROUP: ObjectSchema = object_schema(
    ObjectKind::Group,
    &[
        integer("gid"),
        text("name").required_scalar(),
        text("passwordHash"),
        boolean("shouldExist").since(Spec::V3_2),
        boolean("system"),
    ],
);
static USER: ObjectSchema = object_schema(
    ObjectKind::User,
    &[
        text("gecos"),
        texts("groups", EntryKey::Itself),
        text("homeDir"),
        text("name").required_scalar(),
        boolean("noCreateHome"),
        boolean("noLogInit"),
        boolean("noUserGroup"),
        text("passwordHash"),
        text("primaryGroup"),
        text("shell"),
        boolean("shouldExist").since(Spec::V3_2),
        texts("sshAuthorizedKeys", EntryKey::Itself),
        boolean("system"),
        integer("uid"),
    ],
);

static STORAGE: ObjectSchema = object_schema(
    ObjectKind::Storage,
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
static OWNER: ObjectSchema = object_schema(ObjectKind::Owner, &[integer("id"), text("name")]);
static DIRECTORY: ObjectSchema = object_schema(
    ObjectKind::Directory,
    &[
        object("group", &OWNER),
        integer("mode"),
        boolean("overwrite"),
        text("path").required_scalar(),
        object("user", &OWNER),
    ],
);
static FILE: ObjectSchema = object_schema(
    ObjectKind::File,
    &[
        FieldSchema::new("append", FieldType::List(EntryType::Struct(&RESOURCE), EntryKey::None)),
        object("contents", &RESOURCE),
        object("group", &OWNER),
        integer("mode"),
        boolean("overwrite"),
        text("path").required_scalar(),
        object("user", &OWNER),
    ],
);
static LINK: ObjectSchema = ObjectSchema {
    name: ObjectKind::Link,
    merged_as_unit: &["hard", "target"],
    fields: &[
        object("group", &OWNER),
        boolean("hard"),
        boolean("overwrite"),
        text("path").required_scalar(),
        text("target").plain_until(Spec::V3_2),
        object("user", &OWNER),
    ],
};
static DISK: ObjectSchema = object_schema(
    ObjectKind::Disk,
    &[
        text("device").required_scalar(),
        FieldSchema::new("partitions", FieldType::List(EntryType::Struct(&PARTITION), EntryKey::Partition)),
        boolean("wipeTable"),
    ],
);
static PARTITION: ObjectSchema = object_schema(
    ObjectKind::Partition,
    &[
        text("guid"),
        text("label"),
        integer("number").unset_until(UnsetField::Omitted, Spec::LATEST),
        boolean("resize").since(Spec::V3_2),
        boolean("shouldExist"),
        integer("sizeMiB"),
        integer("startMiB"),
        text("typeGuid"),
        boolean("wipePartitionEntry"),
    ],
);
static FILESYSTEM: ObjectSchema = object_schema(
    ObjectKind::Filesystem,
    &[
        text("device").required_scalar(),
        text("format"),
        text("label"),
        texts("mountOptions", EntryKey::None).since(Spec::V3_1),
        texts("options", EntryKey::None),
        text("path"),
        text("uuid"),
        boolean("wipeFilesystem"),
    ],
);
static RAID: ObjectSchema = object_schema(
    ObjectKind::Raid,
    &[
        texts("devices", EntryKey::Itself).unset_until(UnsetField::Rejected, Spec::V3_2),
        text("level").plain_until(Spec::V3_2),
        text("name").required_scalar(),
        texts("options", EntryKey::None),
        integer("spares"),
    ],
);
static LUKS: ObjectSchema = object_schema(
    ObjectKind::Luks,
    &[
        object("cex", &CEX).since(Spec::V3_5),
        object("clevis", &CLEVIS).unset_until(UnsetField::Null, Spec::V3_2),
        text("device"),
        boolean("discard").since(Spec::V3_4),
        object("keyFile", &RESOURCE),
        text("label"),
        text("name").required_scalar(),
        texts("openOptions", EntryKey::Itself).since(Spec::V3_4),
        texts("options", EntryKey::None),
        text("uuid"),
        boolean("wipeVolume"),
    ],
);
static CEX: ObjectSchema = object_schema(ObjectKind::Section, &[boolean("enabled")]);
static CLEVIS: ObjectSchema = object_schema(
    ObjectKind::Clevis,
    &[
        object("custom", &CUSTOM).unset_until(UnsetField::Null, Spec::V3_2),
        list("tang", &TANG, "url"),
        integer("threshold"),
        boolean("tpm2"),
    ],
);
static CUSTOM: ObjectSchema = object_schema(
    ObjectKind::Custom,
    &[text("config").plain_until(Spec::V3_2), boolean("needsNetwork"), text("pin").plain_until(Spec::V3_2)],
);
static TANG: ObjectSchema = object_schema(
    ObjectKind::Tang,
    &[
        text("advertisement").since(Spec::V3_4),
        text("thumbprint"),
        text("url").required_scalar().unset_until(UnsetField::Omitted, Spec::LATEST),
    ],
);

static SYSTEMD: ObjectSchema = object_schema(ObjectKind::Systemd, &[list("units", &UNIT, "name")]);
static UNIT: ObjectSchema = object_schema(
    ObjectKind::Unit,
    &[
        text("contents"),
        list("dropins", &DROPIN, "name"),
        boolean("enabled"),
        boolean("mask"),
        text("name").required_scalar(),
    ],
);
static DROPIN: ObjectSchema =
    object_schema(ObjectKind::Dropin, &[text("contents"), text("name").required_scalar()]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::config::Config;

    fn object_with_all_fields(schema: &ObjectSchema) -> Value {
        let fields = schema.fields.iter().map(|field| (field.name.to_owned(), value(&field.kind)));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    fn value(kind: &FieldType) -> Value {
        match kind {
            FieldType::Text => json!("a"),
            FieldType::Integer => json!(1),
            FieldType::Boolean => json!(true),
            FieldType::Struct(schema) => object_with_all_fields(schema),
            FieldType::List(EntryType::Text, _) => json!(["a"]),
            FieldType::List(EntryType::Struct(schema), _) => json!([object_with_all_fields(schema)]),
        }
    }

    /// The types of the crate `ignition-config` are generated from Ignition's own JSON schemas, so the schema must have
    /// the same fields.
    #[test]
    fn fields_of_each_version_match_ignition_config() {
        for spec in Spec::ALL {
            let mut config = object_with_all_fields(&CONFIG);
            config["ignition"]["version"] = spec.as_str().into();
            let text = config.to_string();
            let ours = Config::parse(text.as_bytes()).unwrap();
            let unknown: BTreeSet<String> =
                ours.warnings.findings().iter().map(|finding| finding.pointer.clone()).collect();
            let (theirs, warnings) = ignition_config::Config::parse_str(&text).unwrap();
            let unused: BTreeSet<String> = warnings
                .iter()
                .map(|warning| warning.to_string().replace("unused key: $", "").replace('.', "/"))
                .collect();
            assert_eq!(unknown, unused, "{spec}");
            assert_eq!(unknown.is_empty(), spec >= Spec::V3_5);
            let json = serde_json::to_vec(&theirs).unwrap();
            assert_eq!(Config::parse(&json).unwrap().config, ours.config);
        }
    }

    #[test]
    fn fields_are_in_alphabetical_order() {
        fn check(schema: &ObjectSchema) {
            assert!(schema.fields.is_sorted_by_key(|field| field.name), "{:?}", schema.name);
            for field in schema.fields {
                if let FieldType::Struct(schema) | FieldType::List(EntryType::Struct(schema), _) = field.kind
                {
                    check(schema);
                }
            }
        }
        check(&CONFIG);
    }
}
