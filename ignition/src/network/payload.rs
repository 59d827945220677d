//! The files of all hosts of an image, for each way in which they reach a machine.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::Document;
use super::generate::keyfiles_of;
use super::host::HostNetwork;
use super::policy::policy;
use super::{Cancel, Generation, HostError, Keyfile, KeyfileCache, MAX_HOSTS, parallel};
use crate::discovery::Proxies;

/// The script that finds a machine's host at boot and puts its files where they take effect; for any POSIX shell.
pub const SCRIPT: &str = include_str!("boot/pre-network-manager-config.sh");
/// Where the script is in an image.
pub const SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";

const CONNECTIONS: &str = "/etc/NetworkManager/system-connections";
const HOSTS: &str = "/etc/assisted/network";
const MAC_MAP: &str = "mac_interface.ini";
const UNIT: &str = "pre-network-manager-config.service";
const UNITS: &str = "/etc/systemd/system";
const PROXY_CONF: &str = "/etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf";

/// How long the early boot waits for the script, besides a delay.
const TIMEOUT_SECONDS: u64 = 60;

/// A file or a link of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkEntry {
    /// Where it is, from the root.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry of an image is.
#[derive(Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A file of the superuser.
    File {
        /// Its permissions, such as `0o600`.
        mode: u16,
        /// Its contents. They may hold secrets, and `Debug` does not show them.
        contents: Arc<[u8]>,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
}

impl std::fmt::Debug for EntryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { mode, contents } => {
                write!(f, "File {{ mode: {mode:04o}, len: {} }}", contents.len())
            }
            Self::Link { target } => write!(f, "Link {{ target: {target:?} }}"),
        }
    }
}

impl NetworkEntry {
    fn file(path: impl Into<String>, mode: u16, contents: impl Into<Arc<[u8]>>) -> Self {
        Self { path: path.into(), kind: EntryKind::File { mode, contents: contents.into() } }
    }
}

/// What the early boot of a minimal ISO or a PXE boot needs to know besides the hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitrdOptions {
    /// How long the machine waits before it looks for its interfaces, with [`Generation::Nmstate`].
    pub discovery_delay_seconds: u32,
    /// The proxies through which it loads its root file system.
    pub proxies: Proxies,
}

/// What the Ignition config of a full ISO takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnitionFiles {
    /// The files, all of them [`EntryKind::File`].
    pub files: Vec<NetworkEntry>,
    /// The unit, which is to be enabled; nothing where there are no hosts.
    pub unit: Option<IgnitionUnit>,
}

impl IgnitionFiles {
    /// The keyfiles of one host, where `NetworkManager` reads them: for an image that no other machine boots.
    ///
    /// Nothing chooses among hosts there. So the names of the interfaces have to be those that the kernel gives them,
    /// and MAC addresses are not looked at.
    ///
    /// # Errors
    ///
    /// When the document gives no keyfiles, or two of one name.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::network::{HostNetwork, IgnitionFiles};
    ///
    /// let host = HostNetwork::without_macs("interfaces: [{name: eno1, type: ethernet, state: up}]");
    /// let files = IgnitionFiles::for_one_host(&host)?.files;
    /// assert_eq!(files[0].path, "/etc/NetworkManager/system-connections/eno1.nmconnection");
    /// # Ok::<(), ignition::network::HostError>(())
    /// ```
    pub fn for_one_host(host: &HostNetwork) -> Result<Self, HostError> {
        let label = host.label(0);
        let keyfiles = host_keyfiles(&parsed(host, &label)?, &label)?;
        check_names(&keyfiles, &label)?;
        let entry = |Keyfile { name, contents }| {
            NetworkEntry::file(format!("{CONNECTIONS}/{name}"), 0o600, contents.into_bytes())
        };
        Ok(Self { files: keyfiles.into_iter().map(entry).collect(), unit: None })
    }
}

/// A systemd unit of an Ignition config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnitionUnit {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub contents: &'static str,
}

/// One host's files.
#[derive(Debug, Default)]
pub(super) struct HostFiles {
    files: Vec<(FileName, Arc<[u8]>)>,
}

#[derive(Debug)]
enum FileName {
    Fixed(Box<str>),
    /// Policies of all hosts may meet in one folder, so that the host's number is in their names.
    Policy,
}

/// The generated files of all hosts of an image.
///
/// Hosts are numbered in the order of their documents and maps: neither the order in which they were given nor the
/// names they have for messages change anything.
#[derive(Clone, Debug)]
pub struct Networks {
    generation: Generation,
    hosts: Vec<Arc<HostFiles>>,
}

impl Networks {
    /// Makes the files of hosts, on all processors, as far as the cache does not know them.
    ///
    /// Keyfiles are made for [`Generation::Nmstate`] too, to see whether they can be.
    ///
    /// # Errors
    ///
    /// When there are more than [`MAX_HOSTS`] hosts; else the first error, in the order of the hosts: documents that
    /// give no keyfiles, and hosts without MAC addresses.
    pub fn generate(
        hosts: &[HostNetwork],
        generation: Generation,
        cache: &KeyfileCache,
    ) -> Result<Self, HostError> {
        Self::generate_until(hosts, generation, cache, &Cancel::new())
    }

    /// Makes the files of hosts as [`generate`](Self::generate) does, until it is cancelled. The cache keeps what was made
    /// by then.
    ///
    /// # Errors
    ///
    /// Returns [`HostError::Cancelled`] if the work was cancelled, and otherwise the errors of
    /// [`generate`](Self::generate).
    pub fn generate_until(
        hosts: &[HostNetwork],
        generation: Generation,
        cache: &KeyfileCache,
        cancel: &Cancel,
    ) -> Result<Self, HostError> {
        if hosts.len() > MAX_HOSTS {
            return Err(HostError::TooManyHosts { found: hosts.len() });
        }
        let mut known = cache.get(hosts.iter().map(|host| (generation, host.digest())));
        let pending = |(index, known): (usize, &Option<_>)| known.is_none().then_some(index);
        let missing: Vec<usize> = known.iter().enumerate().filter_map(pending).collect();
        let made = parallel::map(&missing, cancel, |index| {
            let host = hosts.get(*index)?;
            let files = HostFiles::generate(host, &host.label(*index), generation).map(Arc::new);
            if let Ok(files) = &files {
                cache.insert((generation, host.digest()), files);
            }
            Some(files)
        });
        if cancel.is_cancelled() {
            return Err(HostError::Cancelled);
        }
        for (index, files) in missing.into_iter().zip(made) {
            if let (Some(place), Some(files)) = (known.get_mut(index), files) {
                *place = Some(files?);
            }
        }
        let mut ranked: Vec<(&HostNetwork, Arc<HostFiles>)> =
            hosts.iter().zip(known).filter_map(|(host, files)| Some((host, files?))).collect();
        ranked.sort_by(|(one, _), (other, _)| one.rank().cmp(&other.rank()));
        ranked.dedup_by_key(|(host, _)| host.digest());
        Ok(Self { generation, hosts: ranked.into_iter().map(|(_, files)| files).collect() })
    }

    /// How many different hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The archive for the early boot of a minimal ISO or a PXE boot, in its order. Nothing, where there are neither
    /// hosts nor proxies: such an image needs no archive.
    #[must_use]
    pub fn initrd(&self, options: &InitrdOptions) -> Vec<NetworkEntry> {
        let mut entries = self.host_files();
        if !self.hosts.is_empty() {
            let unit = format!("{UNITS}/{UNIT}");
            entries.push(NetworkEntry::file(SCRIPT_PATH, 0o755, SCRIPT.as_bytes()));
            entries.push(NetworkEntry::file(&unit, 0o644, self.initrd_unit(options).into_bytes()));
            let path = format!("{UNITS}/initrd.target.wants/{UNIT}");
            entries.push(NetworkEntry { path, kind: EntryKind::Link { target: unit } });
        }
        if let Some(contents) = options.proxies.rootfs_dropin() {
            entries.push(NetworkEntry::file(PROXY_CONF, 0o664, contents.into_bytes()));
        }
        entries
    }

    /// The same for the Ignition config of a full ISO.
    #[must_use]
    pub fn ignition(&self) -> IgnitionFiles {
        if self.hosts.is_empty() {
            return IgnitionFiles { files: Vec::new(), unit: None };
        }
        let mut files = vec![NetworkEntry::file(SCRIPT_PATH, 0o755, SCRIPT.as_bytes())];
        files.extend(self.host_files());
        let contents = match self.generation {
            Generation::Keyfiles => include_str!("boot/ignition-keyfiles.service"),
            Generation::Nmstate => include_str!("boot/ignition-nmstate.service"),
        };
        IgnitionFiles { files, unit: Some(IgnitionUnit { name: UNIT, contents }) }
    }

    fn host_files(&self) -> Vec<NetworkEntry> {
        self.hosts.iter().enumerate().flat_map(|(number, host)| host.entries(number)).collect()
    }

    fn initrd_unit(&self, options: &InitrdOptions) -> String {
        let unit = include_str!("boot/initrd-keyfiles.service");
        match self.generation {
            Generation::Keyfiles => unit.to_owned(),
            Generation::Nmstate => {
                let delay = options.discovery_delay_seconds;
                let timeout = TIMEOUT_SECONDS + u64::from(delay);
                let unit = unit
                    .replace("After=", "After=nm-initrd.service ")
                    .replace("coreos-copy-firstboot-network.service", "coreos-livepxe-rootfs.service");
                format!("{unit}TimeoutSec={timeout}\nEnvironment=DISCOVERY_DELAY_SECONDS={delay}\n")
            }
        }
    }
}

/// Makes the keyfiles of one host, whose document has been parsed, unless the cache knows them.
pub(super) fn generate_cached(
    host: &HostNetwork,
    document: &Document,
    cache: &KeyfileCache,
) -> Result<(), HostError> {
    let key = (Generation::Keyfiles, host.digest());
    if cache.get(std::iter::once(key)).iter().any(Option::is_none) {
        let files = HostFiles::from_document(host, document, &host.label(0), Generation::Keyfiles)?;
        cache.insert(key, &Arc::new(files));
    }
    Ok(())
}

fn parsed<'a>(host: &'a HostNetwork, label: &str) -> Result<Document<'a>, HostError> {
    let document = Document::parse(host.document());
    document.map_err(|source| HostError::Document { host: label.to_owned(), source })
}

/// The keyfiles of a host, at least one.
fn host_keyfiles(document: &Document, label: &str) -> Result<Vec<Keyfile>, HostError> {
    let made = keyfiles_of(document);
    let made = made.map_err(|source| HostError::Document { host: label.to_owned(), source })?;
    if made.is_empty() {
        return Err(HostError::NoInterfaces { host: label.to_owned() });
    }
    Ok(made)
}

/// Refuses keyfiles of which one would replace the other.
fn check_names(keyfiles: &[Keyfile], label: &str) -> Result<(), HostError> {
    let mut names = BTreeSet::new();
    match keyfiles.iter().rev().find(|keyfile| !names.insert(&keyfile.name)) {
        Some(twice) => Err(HostError::DuplicateKeyfile { host: label.to_owned(), name: twice.name.clone() }),
        None => Ok(()),
    }
}

impl HostFiles {
    fn generate(host: &HostNetwork, label: &str, generation: Generation) -> Result<Self, HostError> {
        if host.interfaces().unwrap_or_default().is_empty() {
            return Err(HostError::NoMacs { host: label.to_owned() });
        }
        Self::from_document(host, &parsed(host, label)?, label, generation)
    }

    fn from_document(
        host: &HostNetwork,
        document: &Document,
        label: &str,
        generation: Generation,
    ) -> Result<Self, HostError> {
        let interfaces = host.interfaces().unwrap_or_default();
        let keyfiles = host_keyfiles(document, label)?;
        let mut lines: Vec<String> =
            interfaces.iter().map(|it| format!("{}={}", it.mac_address, it.logical_nic_name)).collect();
        lines.sort();
        let map = (FileName::Fixed(MAC_MAP.into()), Arc::from(lines.join("\n").into_bytes()));
        let files = match generation {
            Generation::Keyfiles => {
                check_names(&keyfiles, label)?;
                let file = |Keyfile { name, contents }: Keyfile| {
                    (FileName::Fixed(name.into()), Arc::from(with_autoconnect(&contents).into_bytes()))
                };
                keyfiles.into_iter().map(file).chain([map]).collect()
            }
            Generation::Nmstate => {
                let policy = policy(host, document.root().clone());
                let policy =
                    policy.map_err(|source| HostError::Document { host: label.to_owned(), source })?;
                vec![map, (FileName::Policy, policy.into_bytes().into())]
            }
        };
        Ok(Self { files })
    }

    /// How many bytes the files have.
    pub(super) fn len(&self) -> usize {
        self.files.iter().map(|(_, contents)| contents.len()).sum()
    }

    fn entries(&self, number: usize) -> impl Iterator<Item = NetworkEntry> {
        self.files.iter().map(move |(name, contents)| {
            let path = match name {
                FileName::Fixed(name) => format!("{HOSTS}/host{number}/{name}"),
                FileName::Policy => format!("{HOSTS}/host{number}/ymlFile{number}.yml"),
            };
            NetworkEntry::file(path, 0o600, Arc::clone(contents))
        })
    }
}

/// Makes a profile win over those that the machine makes by itself, and come up even if its interface is to be down in
/// the end: without it, the machine may not be reached at all.
fn with_autoconnect(keyfile: &str) -> String {
    let mut lines: Vec<&str> = keyfile.lines().collect();
    let start = lines.iter().position(|line| *line == "[connection]").map_or(0, |line| line + 1);
    let len = lines.iter().skip(start).take_while(|line| !line.is_empty()).count();
    let section = lines.get_mut(start..start + len).unwrap_or_default();
    for line in section.iter_mut().filter(|line| line.starts_with("autoconnect=")) {
        *line = "autoconnect=true";
    }
    lines.insert(start + len, "autoconnect-priority=1");
    lines.join("\n") + "\n"
}
