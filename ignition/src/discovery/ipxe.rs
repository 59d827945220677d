//! Generates iPXE scripts that boot a discovery image over the network.
//!
//! There are two scripts. The boot script boots the machine. The redirect script sends the machine's MAC address to the
//! service, which returns the boot script. The service can refuse machines that are already installed; iPXE then
//! continues with the next boot device.
//!
//! iPXE splits lines at blanks and has no quotes. It expands `${name}`, and ends a command at the word `&&` or `||`, or
//! at a word that begins with `#`. Kernel arguments that iPXE would change are rejected.

use std::fmt;

use super::escape::query_value;
use super::input::{InfraEnvId, InputError};
use super::kernel_arguments::KernelArguments;
use super::secret::AgentToken;
use super::url::HttpUrl;

/// The kernel arguments of a network boot that follow the URL of the root file system.
const NETWORK_BOOT_ARGUMENTS: [&str; 7] = [
    "random.trust_cpu=on",
    "rd.luks.options=discard",
    "ignition.firstboot",
    "ignition.platform.id=metal",
    "console=tty1",
    "console=ttyS1,115200n8",
    "coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\"",
];

/// A CPU architecture, in the spelling of the inventory's URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum IpxeArchitecture {
    /// `x86_64`; `amd64` is also accepted.
    X86_64,
    /// `arm64`; `aarch64` is also accepted.
    Arm64,
    /// `ppc64le`.
    Ppc64le,
    /// `s390x`.
    S390x,
}

impl IpxeArchitecture {
    /// Returns the spelling of the architecture in URLs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
        }
    }
}

impl fmt::Display for IpxeArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A credential that machines need to download an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// An API key of the service.
    ApiKey(AgentToken),
    /// A token for one image, the credential of the hosted service.
    ImageToken(AgentToken),
}

impl Credential {
    /// Returns the name and the value of the URL parameter.
    fn url_parameter(&self) -> (&'static str, String) {
        match self {
            Self::ApiKey(token) => ("api_key", query_value(token.reveal())),
            Self::ImageToken(token) => ("image_token", query_value(token.reveal())),
        }
    }
}

/// The inputs for a network boot of an infra-env.
///
/// # Examples
///
/// ```
/// use ignition::discovery::ipxe::{IpxeArchitecture, NetworkBoot};
/// use ignition::discovery::{HttpUrl, InfraEnvId};
///
/// let images = HttpUrl::parse("image_service_base_url", "http://images.example.com")?;
/// let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
/// let boot = NetworkBoot::new(images, id, "4.18", IpxeArchitecture::X86_64)?;
/// assert!(boot.script()?.starts_with("#!ipxe\ninitrd --name initrd http://images.example.com/images/0f2a5d3c"));
/// # Ok::<(), ignition::discovery::InputError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetworkBoot {
    image_service: HttpUrl,
    infra_env: InfraEnvId,
    version: String,
    architecture: IpxeArchitecture,
    /// The credential for the initrd, if the image service requires one.
    pub credential: Option<Credential>,
    /// Changes to the kernel arguments.
    pub kernel_arguments: KernelArguments,
}

impl NetworkBoot {
    /// Creates a network boot of an infra-env. `version` is the version of the system, such as `4.18`.
    ///
    /// # Errors
    ///
    /// Returns an error if the version is empty or contains characters that are not allowed in versions.
    pub fn new(
        image_service: HttpUrl,
        infra_env: InfraEnvId,
        version: &str,
        architecture: IpxeArchitecture,
    ) -> Result<Self, InputError> {
        let is_version = |it: u8| it.is_ascii_alphanumeric() || b".-_+".contains(&it);
        if version.is_empty() || !version.bytes().all(is_version) {
            return Err(InputError::new("openshift_version", version, "is not a valid version"));
        }
        Ok(Self {
            image_service,
            infra_env,
            version: version.to_owned(),
            architecture,
            credential: None,
            kernel_arguments: KernelArguments::default(),
        })
    }

    /// Returns the URL of the initrd that contains the config. If there is a credential, the URL is a secret.
    pub(crate) fn initrd_url(&self) -> String {
        self.url(&format!("/images/{}/pxe-initrd", self.infra_env), self.credential.as_ref())
    }

    /// Returns the URL of one revision of the initrd. If there is a credential, the URL is a secret.
    #[must_use]
    pub fn initrd_url_at_revision(&self, revision: impl fmt::Display) -> String {
        self.url(&format!("/images/{}/{revision}/pxe-initrd", self.infra_env), self.credential.as_ref())
    }

    /// Returns the URLs of the files that the boot script loads.
    #[must_use]
    pub fn files(&self) -> BootFiles {
        BootFiles {
            kernel: self.url("/boot-artifacts/kernel", None),
            initrd: self.initrd_url(),
            rootfs: self.url("/boot-artifacts/rootfs", None),
        }
    }

    /// Returns the boot script.
    ///
    /// # Errors
    ///
    /// Returns an error if iPXE would change a kernel argument.
    pub fn script(&self) -> Result<String, InputError> {
        self.files().script(&self.kernel_arguments)
    }

    /// Returns a URL of the image service. Parameters are sorted by name, because signatures require it.
    fn url(&self, path: &str, credential: Option<&Credential>) -> String {
        let (architecture, version) = (self.architecture.to_string(), query_value(&self.version));
        let mut parameters = vec![("arch", architecture), ("version", version)];
        parameters.extend(credential.map(Credential::url_parameter));
        self.image_service.join(&url_with_parameters(path, parameters))
    }
}

/// The URLs of the files for a network boot. iPXE resolves a relative URL against the URL of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootFiles {
    /// URL of the kernel.
    pub kernel: String,
    /// URL of the initrd that contains the config.
    pub initrd: String,
    /// URL of the root file system. It must be absolute, because the live system downloads it and cannot resolve a
    /// relative URL.
    pub rootfs: String,
}

impl BootFiles {
    /// Returns the boot script for these files.
    ///
    /// # Errors
    ///
    /// Returns an error if iPXE would change a kernel argument.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::ipxe::BootFiles;
    /// use ignition::discovery::kernel_arguments::KernelArguments;
    ///
    /// let (kernel, initrd) = ("vmlinuz".to_owned(), "initrd.img".to_owned());
    /// let files = BootFiles { kernel, initrd, rootfs: "http://192.0.2.1/rootfs.img".to_owned() };
    /// let script = files.script(&KernelArguments::default())?;
    /// assert!(script.starts_with("#!ipxe\ninitrd --name initrd initrd.img\nkernel vmlinuz initrd=initrd "));
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn script(&self, changes: &KernelArguments) -> Result<String, InputError> {
        let rootfs = format!("coreos.live.rootfs_url={}", self.rootfs);
        let defaults: Vec<&str> =
            ["initrd=initrd", &rootfs].into_iter().chain(NETWORK_BOOT_ARGUMENTS).collect();
        let arguments = changes.apply(&defaults);
        if let Some((argument, reason)) =
            arguments.iter().find_map(|argument| Some((argument, ipxe_problem(argument)?)))
        {
            return Err(InputError::new("kernel_arguments", argument, reason));
        }
        let Self { kernel, initrd, .. } = self;
        Ok(format!("#!ipxe\ninitrd --name initrd {initrd}\nkernel {kernel} {}\nboot\n", arguments.join(" ")))
    }
}

/// Returns the redirect script, which requests the boot script with the MAC address of the machine's first interface.
#[must_use]
pub fn redirect_script(service: &HttpUrl, infra_env: &InfraEnvId, credential: Option<&Credential>) -> String {
    let mut parameters = vec![("file_name", "ipxe-script".to_owned())];
    parameters.extend(credential.map(Credential::url_parameter));
    let path = format!("/api/assisted-install/v2/infra-envs/{infra_env}/downloads/files");
    // iPXE replaces the variable with the MAC address.
    format!("#!ipxe\nchain {}&mac=${{net0/mac}}\n", service.join(&url_with_parameters(&path, parameters)))
}

fn url_with_parameters(path: &str, mut parameters: Vec<(&str, String)>) -> String {
    parameters.sort();
    let pairs: Vec<String> = parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// Returns the reason why iPXE would change a kernel argument, or `None` if it would not change it.
fn ipxe_problem(argument: &str) -> Option<&'static str> {
    if argument.contains("${") {
        return Some("contains \"${\", which iPXE expands");
    }
    if argument.contains("  ") || argument.contains('\t') {
        return Some("has consecutive blanks, which iPXE merges into one");
    }
    let ends = |word: &str| word.starts_with('#') || word == "&&" || word == "||";
    argument.split(' ').any(ends).then_some("has a word that ends the command in iPXE")
}

#[cfg(test)]
mod tests {
    use super::super::kernel_arguments::{KernelArgumentChange, KernelArgumentOperation};
    use super::*;

    const ID: &str = "0f2a5d3c-1111-4222-8333-444455556666";

    fn network_boot(architecture: IpxeArchitecture) -> NetworkBoot {
        let images = HttpUrl::parse("f", "http://images.example.com:8080/").unwrap();
        NetworkBoot::new(images, InfraEnvId::parse(ID).unwrap(), "4.18", architecture).unwrap()
    }

    fn script_with_changes(changes: &[(KernelArgumentOperation, &str)]) -> Result<String, InputError> {
        let mut boot = network_boot(IpxeArchitecture::X86_64);
        let change = |(operation, value): &(KernelArgumentOperation, &str)| {
            KernelArgumentChange::new(*operation, value)
        };
        boot.kernel_arguments = changes.iter().map(change).collect::<Result<_, _>>()?;
        boot.script()
    }

    #[test]
    fn script_has_four_lines() {
        for (architecture, name) in [
            (IpxeArchitecture::X86_64, "x86_64"),
            (IpxeArchitecture::Arm64, "arm64"),
            (IpxeArchitecture::Ppc64le, "ppc64le"),
            (IpxeArchitecture::S390x, "s390x"),
        ] {
            let artifact = |kind: &str| {
                format!("http://images.example.com:8080/boot-artifacts/{kind}?arch={name}&version=4.18")
            };
            let expected = format!(
                "#!ipxe
initrd --name initrd http://images.example.com:8080/images/{ID}/pxe-initrd?arch={name}&version=4.18
kernel {} initrd=initrd coreos.live.rootfs_url={} random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal console=tty1 console=ttyS1,115200n8 coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\"
boot
",
                artifact("kernel"),
                artifact("rootfs"),
            );
            assert_eq!(network_boot(architecture).script().unwrap(), expected);
        }
    }

    #[test]
    fn credential_is_only_in_initrd_url_and_in_name_order() {
        let mut boot = network_boot(IpxeArchitecture::Arm64);
        boot.credential = Some(Credential::ApiKey(AgentToken::new("a.b&c").unwrap()));
        let script = boot.script().unwrap();
        assert!(script.contains("/pxe-initrd?api_key=a.b%26c&arch=arm64&version=4.18\n"), "{script}");
        assert_eq!(script.matches("api_key").count(), 1);
        boot.credential = Some(Credential::ImageToken(AgentToken::new("t").unwrap()));
        assert!(boot.initrd_url().ends_with("?arch=arm64&image_token=t&version=4.18"));
        assert!(!format!("{boot:?}").contains("\"t\""));
    }

    #[test]
    fn redirect_keeps_path_of_service() {
        let service = HttpUrl::parse("f", "https://a.example.com/prefix/").unwrap();
        let id = InfraEnvId::parse(ID).unwrap();
        let files =
            format!("https://a.example.com/prefix/api/assisted-install/v2/infra-envs/{ID}/downloads/files");
        assert_eq!(
            redirect_script(&service, &id, None),
            format!("#!ipxe\nchain {files}?file_name=ipxe-script&mac=${{net0/mac}}\n")
        );
        let key = Credential::ApiKey(AgentToken::new("k").unwrap());
        let expected = format!("#!ipxe\nchain {files}?api_key=k&file_name=ipxe-script&mac=${{net0/mac}}\n");
        assert_eq!(redirect_script(&service, &id, Some(&key)), expected);
        let token = Credential::ImageToken(AgentToken::new("k").unwrap());
        assert!(redirect_script(&service, &id, Some(&token)).contains("ipxe-script&image_token=k&mac="));
    }

    #[test]
    fn kernel_arguments_are_applied_to_the_script() {
        let script = script_with_changes(&[
            (KernelArgumentOperation::Delete, "console=ttyS1,115200n8"),
            (KernelArgumentOperation::Append, "p=\"a b\""),
            (KernelArgumentOperation::Replace, "console=tty1=tty0"),
        ])
        .unwrap();
        let end = "console=tty0 coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\" p=\"a b\"\nboot\n";
        assert!(script.ends_with(end), "{script}");
    }

    #[test]
    fn rejects_arguments_that_ipxe_would_change() {
        for bad in ["a=${net0/mac}", "#a", "p=\"a #b\"", "&&", "||", "p=\"a && b\"", "p=\"a  b\""] {
            let error =
                script_with_changes(&[(KernelArgumentOperation::Append, bad)]).unwrap_err().to_string();
            assert!(error.starts_with("kernel_arguments "), "{error}");
        }
        assert!(script_with_changes(&[(KernelArgumentOperation::Append, "a=#b&&$c")]).is_ok());
        let images = HttpUrl::parse("f", "http://a").unwrap();
        for bad in ["", "4.18 quiet", "4\n"] {
            let id = InfraEnvId::parse(ID).unwrap();
            assert!(NetworkBoot::new(images.clone(), id, bad, IpxeArchitecture::X86_64).is_err());
        }
    }
}
