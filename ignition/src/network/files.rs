//! Generates the network files for all hosts of an image, for the initrd and for the Ignition config.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::NetworkDocument;
use super::generate::keyfiles_from_document;
use super::host::HostNetwork;
use super::nmstate_policy::nmstate_policy;
use super::{
    Cancel, HostError, Keyfile, KeyfileCache, MAX_HOSTS, MacInterface, NetworkError, NetworkGeneration,
    parallel,
};
use crate::discovery::Proxies;

/// The script that selects the booted machine's host and installs its files. It runs in any POSIX shell.
const BOOT_SCRIPT: &str = include_str!("boot/pre-network-manager-config.sh");
/// Path of the script in an image.
const BOOT_SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";

const CONNECTIONS_DIRECTORY: &str = "/etc/NetworkManager/system-connections";
const HOSTS_DIRECTORY: &str = "/etc/assisted/network";
const MAC_MAP_NAME: &str = "mac_interface.ini";
const UNIT_NAME: &str = "pre-network-manager-config.service";
const UNITS_DIRECTORY: &str = "/etc/systemd/system";
const PROXY_DROPIN_PATH: &str = "/etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf";

/// Time limit of the script during early boot in seconds, in addition to the delay.
const TIMEOUT_SECONDS: u64 = 60;

/// A file or symbolic link to write to an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkEntry {
    /// The absolute path.
    pub path: String,
    /// The type of the entry, with its mode and contents or its target.
    pub kind: EntryKind,
}

/// The type of an entry in an image.
#[derive(Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A file that root owns.
    File {
        /// The permissions, such as `0o600`.
        mode: u16,
        /// The contents of the file. `Debug` does not print them, because they may contain secrets.
        contents: Arc<[u8]>,
    },
    /// A symbolic link.
    Link {
        /// The target of the link.
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

/// Options for the early boot of a minimal ISO or a network boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitrdOptions {
    /// Delay in seconds before the machine looks for its interfaces. Used only with [`NetworkGeneration::Nmstate`].
    pub discovery_delay_seconds: u32,
    /// The proxies that the machine uses to download its root file system.
    pub proxies: Proxies,
}

/// The network files for the Ignition config of a full ISO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnitionFiles {
    /// The files of all hosts and the boot script. All entries are [`EntryKind::File`].
    pub files: Vec<NetworkEntry>,
    /// The unit that runs the script, which the config must enable; `None` without hosts.
    pub unit: Option<IgnitionUnit>,
}

impl IgnitionFiles {
    /// Returns the keyfiles of one host in the directory of `NetworkManager`, for an image that no other machine boots.
    ///
    /// No script selects a host, so the document must use the interface names of the kernel, and MAC addresses are
    /// ignored.
    ///
    /// # Errors
    ///
    /// * [`HostError::Document`] if no keyfiles can be generated from the document.
    /// * [`HostError::NoInterfaces`] if the document configures no interfaces.
    /// * [`HostError::DuplicateKeyfile`] if two keyfiles have the same name.
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
        let keyfiles = host_keyfiles(&parse_document(host, &label)?, &label)?;
        check_names(&keyfiles, &label)?;
        let entry = |Keyfile { name, contents }| {
            NetworkEntry::file(format!("{CONNECTIONS_DIRECTORY}/{name}"), 0o600, contents.into_bytes())
        };
        Ok(Self { files: keyfiles.into_iter().map(entry).collect(), unit: None })
    }
}

/// A systemd unit for an Ignition config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnitionUnit {
    /// The name of the unit.
    pub name: &'static str,
    /// The text of the unit.
    pub contents: &'static str,
}

/// The generated files of one host.
#[derive(Debug, Default)]
pub(super) struct GeneratedHostFiles {
    files: Vec<(HostFileName, Arc<[u8]>)>,
}

#[derive(Debug)]
enum HostFileName {
    Fixed(Box<str>),
    /// The nmstate policy. The script may collect the policies of several hosts in one directory, so the file name
    /// contains the number of the host.
    Policy,
}

/// The generated files of all hosts of an image.
///
/// Hosts are numbered in the order of their documents and maps. Neither the order of the input nor the names in
/// messages affect the image.
///
/// # Examples
///
/// ```
/// use ignition::network::{
///     HostError, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacAddr, NetworkGeneration,
/// };
///
/// let document = "interfaces: [{name: eth0, type: ethernet, state: up}]";
/// let mac: MacAddr = "52:54:00:aa:bb:01".parse()?;
/// let hosts = [HostNetwork::new(document, [("eth0", mac)])];
/// let cache = KeyfileCache::default();
///
/// // A live system before 4.18 gets keyfiles, a later one a policy that nmstate applies at boot.
/// let files = HostNetworkFiles::generate(&hosts, NetworkGeneration::for_version("4.17"), &cache)?;
/// let entries = files.initrd_entries(&InitrdOptions::default());
/// assert_eq!(entries[0].path, "/etc/assisted/network/host0/eth0.nmconnection");
///
/// let files = HostNetworkFiles::generate(&hosts, NetworkGeneration::for_version("4.18"), &cache)?;
/// let entries = files.initrd_entries(&InitrdOptions::default());
/// assert_eq!(entries[1].path, "/etc/assisted/network/host0/ymlFile0.yml");
///
/// let unknown = [HostNetwork::without_macs(document)];
/// let error = HostNetworkFiles::generate(&unknown, NetworkGeneration::Keyfiles, &cache).unwrap_err();
/// assert!(matches!(error, HostError::NoMacs { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostNetworkFiles {
    generation: NetworkGeneration,
    hosts: Vec<Arc<GeneratedHostFiles>>,
}

impl HostNetworkFiles {
    /// Generates the files of hosts on all CPUs. Files in the cache are not generated again.
    ///
    /// For [`NetworkGeneration::Nmstate`], keyfiles are generated too, to find out whether the generator accepts the
    /// documents.
    ///
    /// # Errors
    ///
    /// Returns the first error in the order of the hosts:
    ///
    /// * [`HostError::TooManyHosts`] if there are more than [`MAX_HOSTS`] hosts.
    /// * [`HostError::NoMacs`] if a host has no MAC addresses.
    /// * [`HostError::Document`] if no keyfiles can be generated from a document.
    /// * [`HostError::NoInterfaces`] if a document configures no interfaces.
    /// * [`HostError::DuplicateKeyfile`] if two keyfiles of a host have the same name.
    pub fn generate(
        hosts: &[HostNetwork],
        generation: NetworkGeneration,
        cache: &KeyfileCache,
    ) -> Result<Self, HostError> {
        Self::generate_cancellable(hosts, generation, cache, &Cancel::new())
    }

    /// Generates the files of hosts like [`generate`](Self::generate), until the work is cancelled. The cache keeps the
    /// files finished by then.
    ///
    /// # Errors
    ///
    /// Returns [`HostError::Cancelled`] if the work was cancelled, otherwise the errors of
    /// [`generate`](Self::generate).
    pub fn generate_cancellable(
        hosts: &[HostNetwork],
        generation: NetworkGeneration,
        cache: &KeyfileCache,
        cancel: &Cancel,
    ) -> Result<Self, HostError> {
        if hosts.len() > MAX_HOSTS {
            return Err(HostError::TooManyHosts { found: hosts.len() });
        }
        let cached = cache.get(hosts.iter().map(|host| (generation, host.digest())));
        let looked_up = hosts.iter().enumerate().zip(&cached);
        let missing: Vec<(usize, &HostNetwork)> =
            looked_up.filter_map(|(host, cached)| cached.is_none().then_some(host)).collect();
        let results = parallel::map(&missing, cancel, |(index, host)| {
            let files = GeneratedHostFiles::generate(host, &host.label(*index), generation).map(Arc::new);
            if let Ok(files) = &files {
                cache.insert((generation, host.digest()), files);
            }
            files
        });
        if cancel.is_cancelled() {
            return Err(HostError::Cancelled);
        }
        let mut results = results.into_iter();
        let mut ranked = Vec::with_capacity(hosts.len());
        for (host, cached) in hosts.iter().zip(cached) {
            // A result is missing only if the work was cancelled.
            let files = cached.map_or_else(|| results.next().unwrap_or(Err(HostError::Cancelled)), Ok)?;
            ranked.push((host, files));
        }
        ranked.sort_by(|(one, _), (other, _)| one.sort_key().cmp(&other.sort_key()));
        ranked.dedup_by_key(|(host, _)| host.digest());
        Ok(Self { generation, hosts: ranked.into_iter().map(|(_, files)| files).collect() })
    }

    /// Returns the number of distinct hosts.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the entries of the archive for the early boot of a minimal ISO or a network boot, in the order of the
    /// archive. Returns an empty list if there are no hosts and no proxies, because the image then needs no archive.
    #[must_use]
    pub fn initrd_entries(&self, options: &InitrdOptions) -> Vec<NetworkEntry> {
        let mut entries = self.host_files();
        if !self.hosts.is_empty() {
            let unit = format!("{UNITS_DIRECTORY}/{UNIT_NAME}");
            entries.push(NetworkEntry::file(BOOT_SCRIPT_PATH, 0o755, BOOT_SCRIPT.as_bytes()));
            entries.push(NetworkEntry::file(&unit, 0o644, self.initrd_unit(options).into_bytes()));
            let path = format!("{UNITS_DIRECTORY}/initrd.target.wants/{UNIT_NAME}");
            entries.push(NetworkEntry { path, kind: EntryKind::Link { target: unit } });
        }
        if let Some(contents) = options.proxies.rootfs_dropin() {
            entries.push(NetworkEntry::file(PROXY_DROPIN_PATH, 0o664, contents.into_bytes()));
        }
        entries
    }

    /// Returns the files and the unit for the Ignition config of a full ISO.
    #[must_use]
    pub fn ignition_files(&self) -> IgnitionFiles {
        if self.hosts.is_empty() {
            return IgnitionFiles { files: Vec::new(), unit: None };
        }
        let mut files = vec![NetworkEntry::file(BOOT_SCRIPT_PATH, 0o755, BOOT_SCRIPT.as_bytes())];
        files.extend(self.host_files());
        let contents = match self.generation {
            NetworkGeneration::Keyfiles => include_str!("boot/ignition-keyfiles.service"),
            NetworkGeneration::Nmstate => include_str!("boot/ignition-nmstate.service"),
        };
        IgnitionFiles { files, unit: Some(IgnitionUnit { name: UNIT_NAME, contents }) }
    }

    fn host_files(&self) -> Vec<NetworkEntry> {
        self.hosts.iter().enumerate().flat_map(|(number, host)| host.entries(number)).collect()
    }

    fn initrd_unit(&self, options: &InitrdOptions) -> String {
        let unit = include_str!("boot/initrd-keyfiles.service");
        match self.generation {
            NetworkGeneration::Keyfiles => unit.to_owned(),
            NetworkGeneration::Nmstate => {
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

/// Generates the files of one host from its parsed document and its map, unless they are in the cache.
pub(super) fn generate_cached(
    host: &HostNetwork,
    interfaces: &[MacInterface],
    document: &NetworkDocument,
    cache: &KeyfileCache,
) -> Result<(), HostError> {
    let generation = NetworkGeneration::Keyfiles;
    let key = (generation, host.digest());
    if cache.get(std::iter::once(key)).iter().any(Option::is_none) {
        let files = GeneratedHostFiles::from_document(interfaces, document, &host.label(0), generation)?;
        cache.insert(key, &Arc::new(files));
    }
    Ok(())
}

fn parse_document<'a>(host: &'a HostNetwork, label: &str) -> Result<NetworkDocument<'a>, HostError> {
    NetworkDocument::parse(host.document()).map_err(HostError::in_document_of(label))
}

/// Returns the keyfiles of a host. Returns an error if the host has no keyfile.
fn host_keyfiles(document: &NetworkDocument, label: &str) -> Result<Vec<Keyfile>, HostError> {
    let keyfiles = keyfiles_from_document(document).map_err(HostError::in_document_of(label))?;
    if keyfiles.is_empty() {
        return Err(HostError::NoInterfaces { host: label.to_owned() });
    }
    Ok(keyfiles)
}

/// Rejects two keyfiles with the same name, because one would overwrite the other.
fn check_names(keyfiles: &[Keyfile], label: &str) -> Result<(), HostError> {
    let mut names = BTreeSet::new();
    match keyfiles.iter().rev().find(|keyfile| !names.insert(&keyfile.name)) {
        Some(twice) => Err(HostError::DuplicateKeyfile { host: label.to_owned(), name: twice.name.clone() }),
        None => Ok(()),
    }
}

impl GeneratedHostFiles {
    fn generate(host: &HostNetwork, label: &str, generation: NetworkGeneration) -> Result<Self, HostError> {
        let Some(interfaces) = host.interfaces().filter(|it| !it.is_empty()) else {
            return Err(HostError::NoMacs { host: label.to_owned() });
        };
        Self::from_document(interfaces, &parse_document(host, label)?, label, generation)
    }

    fn from_document(
        interfaces: &[MacInterface],
        document: &NetworkDocument,
        label: &str,
        generation: NetworkGeneration,
    ) -> Result<Self, HostError> {
        let failed = HostError::in_document_of(label);
        let keyfiles = host_keyfiles(document, label)?;
        let mut lines: Vec<String> =
            interfaces.iter().map(|it| format!("{}={}", it.mac_address, it.logical_nic_name)).collect();
        lines.sort();
        let map = (HostFileName::Fixed(MAC_MAP_NAME.into()), Arc::from(lines.join("\n").into_bytes()));
        let files = match generation {
            NetworkGeneration::Keyfiles => {
                check_names(&keyfiles, label)?;
                let file = |keyfile: Keyfile| {
                    let contents = with_autoconnect(&keyfile).map_err(&failed)?;
                    Ok((HostFileName::Fixed(keyfile.name.into()), Arc::from(contents.into_bytes())))
                };
                keyfiles.into_iter().map(file).chain([Ok(map)]).collect::<Result<_, _>>()?
            }
            NetworkGeneration::Nmstate => {
                let policy = nmstate_policy(interfaces, document.root().clone()).map_err(failed)?;
                vec![map, (HostFileName::Policy, policy.into_bytes().into())]
            }
        };
        Ok(Self { files })
    }

    /// Returns the total length of all contents in bytes.
    pub(super) fn len(&self) -> usize {
        self.files.iter().map(|(_, contents)| contents.len()).sum()
    }

    fn entries(&self, number: usize) -> impl Iterator<Item = NetworkEntry> {
        self.files.iter().map(move |(name, contents)| {
            let path = match name {
                HostFileName::Fixed(name) => format!("{HOSTS_DIRECTORY}/host{number}/{name}"),
                HostFileName::Policy => format!("{HOSTS_DIRECTORY}/host{number}/ymlFile{number}.yml"),
            };
            NetworkEntry::file(path, 0o600, Arc::clone(contents))
        })
    }
}

/// Changes a profile so that it has priority over the profiles that the machine creates itself and is enabled, even if
/// the document sets its interface down. Otherwise, the machine might be unreachable.
fn with_autoconnect(keyfile: &Keyfile) -> Result<String, NetworkError> {
    let mut lines: Vec<&str> = keyfile.contents.lines().collect();
    let Some(start) = lines.iter().position(|line| *line == "[connection]") else {
        return Err(NetworkError::NoConnection { name: keyfile.name.clone() });
    };
    let len = lines.iter().skip(start).take_while(|line| !line.is_empty()).count();
    for line in lines.iter_mut().skip(start).take(len).filter(|line| line.starts_with("autoconnect=")) {
        *line = "autoconnect=true";
    }
    lines.insert(start + len, "autoconnect-priority=1");
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::network::check::check_hosts_cancellable;

    #[test]
    fn rejects_keyfile_without_connection() {
        let keyfile = |contents: &str| Keyfile { name: "a.nmconnection".into(), contents: contents.into() };
        let error = with_autoconnect(&keyfile("[ipv4]\nmethod=auto\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the nmstate library generated the keyfile \"a.nmconnection\" without a [connection] section"
        );
        let text = with_autoconnect(&keyfile("[connection]\nautoconnect=false\nid=a\n\n[ipv4]\n")).unwrap();
        assert_eq!(text, "[connection]\nautoconnect=true\nid=a\nautoconnect-priority=1\n\n[ipv4]\n");
    }

    /// Returns many more hosts than the work processes after the cancellation.
    fn many_hosts() -> Vec<HostNetwork> {
        let host = |number: u32| {
            let document =
                format!("interfaces: [{{name: eth0, type: ethernet, state: up, description: h{number}}}]");
            let mac_address =
                format!("52:54:00:{:02x}:{:02x}:{:02x}", number >> 16, number >> 8 & 255, number & 255);
            HostNetwork::from_unchecked(
                document,
                vec![MacInterface { logical_nic_name: "eth0".to_owned(), mac_address }],
            )
        };
        (0..20_000).map(host).collect()
    }

    /// Runs `work` and cancels it when the cache contains a host. Returns the number of processed hosts.
    fn hosts_done_when_cancelled(work: impl FnOnce(&[HostNetwork], &KeyfileCache, &Cancel)) -> usize {
        let (hosts, cache, cancel) = (many_hosts(), KeyfileCache::default(), Cancel::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                while cache.host_count() == 0 {
                    thread::yield_now();
                }
                cancel.cancel();
            });
            work(&hosts, &cache, &cancel);
        });
        cache.host_count()
    }

    #[test]
    fn cancelled_work_skips_most_hosts() {
        let checked = hosts_done_when_cancelled(|hosts, cache, cancel| {
            assert_eq!(check_hosts_cancellable(hosts, cache, cancel), None)
        });
        let generated = hosts_done_when_cancelled(|hosts, cache, cancel| {
            let result =
                HostNetworkFiles::generate_cancellable(hosts, NetworkGeneration::Keyfiles, cache, cancel);
            assert!(matches!(result, Err(HostError::Cancelled)));
        });
        assert!(checked < 10_000 && generated < 10_000, "{checked} {generated}");
    }
}
