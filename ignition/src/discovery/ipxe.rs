//! iPXE scripts: how a machine boots the discovery over the network.
//!
//! Two forms: the script that boots, and one that asks the service again with the machine's MAC address, so that the service
//! can refuse machines that are installed already. iPXE then goes on to the next boot device.
//!
//! iPXE splits lines at blanks and knows no quotes. It expands `${name}`, and ends a command at a word that is `&&` or `||` or
//! begins with `#`. What would come out otherwise than it went in is refused.

use std::fmt;
use std::str::FromStr;

use super::escape::query;
use super::input::{InfraEnvId, InputError};
use super::kernel_arguments::KernelArguments;
use super::secret::Token;
use super::url::HttpUrl;

/// The kernel arguments of a network boot, after the URL of the root file system.
const ARGUMENTS: [&str; 7] = [
    "random.trust_cpu=on",
    "rd.luks.options=discard",
    "ignition.firstboot",
    "ignition.platform.id=metal",
    "console=tty1",
    "console=ttyS1,115200n8",
    "coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\"",
];

/// A CPU architecture, as the inventory spells it in URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// `x86_64`
    X86_64,
    /// `arm64`, which also answers to `aarch64`
    Arm64,
    /// `ppc64le`
    Ppc64le,
    /// `s390x`
    S390x,
}

impl Architecture {
    /// The text in URLs.
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

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Architecture {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        match text {
            "x86_64" | "amd64" => Ok(Self::X86_64),
            "arm64" | "aarch64" => Ok(Self::Arm64),
            "ppc64le" => Ok(Self::Ppc64le),
            "s390x" => Ok(Self::S390x),
            _ => Err(InputError::new("cpu_architecture", text, "is not x86_64, arm64, ppc64le or s390x")),
        }
    }
}

/// What lets a machine fetch what is not for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// A token of the service itself.
    ApiKey(Token),
    /// A token for one image, of the hosted service.
    ImageToken(Token),
}

impl Credential {
    /// The parameter of a URL: its name and its value.
    fn parameter(&self) -> (&'static str, String) {
        match self {
            Self::ApiKey(token) => ("api_key", query(token.reveal())),
            Self::ImageToken(token) => ("image_token", query(token.reveal())),
        }
    }
}

/// A discovery over the network.
///
/// # Examples
///
/// ```
/// use ignition::discovery::ipxe::{Architecture, NetworkBoot};
/// use ignition::discovery::{HttpUrl, InfraEnvId};
///
/// let images = HttpUrl::parse("image_service_base_url", "http://images.example.com")?;
/// let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
/// let boot = NetworkBoot::new(images, id, "4.18", Architecture::X86_64)?;
/// assert!(boot.script()?.starts_with("#!ipxe\ninitrd --name initrd http://images.example.com/images/0f2a5d3c"));
/// # Ok::<(), ignition::discovery::InputError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetworkBoot {
    image_service: HttpUrl,
    infra_env: InfraEnvId,
    version: String,
    architecture: Architecture,
    /// What lets a machine fetch its initrd, where that needs anything.
    pub credential: Option<Credential>,
    /// Changes to the kernel arguments.
    pub kernel_arguments: KernelArguments,
}

impl NetworkBoot {
    /// The images of an infra-env for a version of the system, such as `4.18`.
    ///
    /// # Errors
    ///
    /// When the version is empty or has other characters than versions have.
    pub fn new(
        image_service: HttpUrl,
        infra_env: InfraEnvId,
        version: &str,
        architecture: Architecture,
    ) -> Result<Self, InputError> {
        let is_version = |it: u8| it.is_ascii_alphanumeric() || b".-_+".contains(&it);
        if version.is_empty() || !version.bytes().all(is_version) {
            return Err(InputError::new("openshift_version", version, "is no version"));
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

    /// Where the kernel is.
    #[must_use]
    pub fn kernel_url(&self) -> String {
        self.url("/boot-artifacts/kernel", None)
    }

    /// Where the root file system is.
    #[must_use]
    pub fn rootfs_url(&self) -> String {
        self.url("/boot-artifacts/rootfs", None)
    }

    /// Where the initrd with the config is. With a credential, the URL is a secret.
    #[must_use]
    pub fn initrd_url(&self) -> String {
        self.url(&format!("/images/{}/pxe-initrd", self.infra_env), self.credential.as_ref())
    }

    /// The script that boots.
    ///
    /// # Errors
    ///
    /// When iPXE would not hand on a kernel argument as it is.
    pub fn script(&self) -> Result<String, InputError> {
        let files =
            BootFiles { kernel: self.kernel_url(), initrd: self.initrd_url(), rootfs: self.rootfs_url() };
        files.script(&self.kernel_arguments)
    }

    /// Something of the image service; parameters stand in the order of their names, as signatures want them.
    fn url(&self, path: &str, credential: Option<&Credential>) -> String {
        let (architecture, version) = (self.architecture.to_string(), query(&self.version));
        let mut parameters = vec![("arch", architecture), ("version", version)];
        parameters.extend(credential.map(Credential::parameter));
        self.image_service.join(&with_parameters(path, parameters))
    }
}

/// Where the files of a boot over the network are. iPXE takes what is no whole URL for a place beside the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootFiles {
    /// The kernel.
    pub kernel: String,
    /// The initrd with the config.
    pub initrd: String,
    /// The root file system. The live system fetches it, which knows nothing of the script: this is a whole URL.
    pub rootfs: String,
}

impl BootFiles {
    /// The script that boots them.
    ///
    /// # Errors
    ///
    /// When iPXE would not hand on a kernel argument as it is.
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
        let defaults: Vec<&str> = ["initrd=initrd", &rootfs].into_iter().chain(ARGUMENTS).collect();
        let arguments = changes.apply(&defaults);
        if let Some((argument, reason)) =
            arguments.iter().find_map(|argument| Some((argument, problem(argument)?)))
        {
            return Err(InputError::new("kernel_arguments", argument, reason));
        }
        let Self { kernel, initrd, .. } = self;
        Ok(format!("#!ipxe\ninitrd --name initrd {initrd}\nkernel {kernel} {}\nboot\n", arguments.join(" ")))
    }
}

/// The script that asks the service again, with the MAC address of the machine's first interface.
#[must_use]
pub fn redirect_script(service: &HttpUrl, infra_env: &InfraEnvId, credential: Option<&Credential>) -> String {
    let mut parameters = vec![("file_name", "ipxe-script".to_owned())];
    parameters.extend(credential.map(Credential::parameter));
    let path = format!("/api/assisted-install/v2/infra-envs/{infra_env}/downloads/files");
    // iPXE puts in the address.
    format!("#!ipxe\nchain {}&mac=${{net0/mac}}\n", service.join(&with_parameters(&path, parameters)))
}

fn with_parameters(path: &str, mut parameters: Vec<(&str, String)>) -> String {
    parameters.sort();
    let pairs: Vec<String> = parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// Why iPXE would not hand on a kernel argument as it is.
fn problem(argument: &str) -> Option<&'static str> {
    if argument.contains("${") {
        return Some("has \"${\", which iPXE replaces");
    }
    if argument.contains("  ") || argument.contains('\t') {
        return Some("has blanks in a row, of which iPXE makes one");
    }
    let ends = |word: &str| word.starts_with('#') || word == "&&" || word == "||";
    argument.split(' ').any(ends).then_some("has a word at which iPXE ends the command")
}

#[cfg(test)]
mod tests {
    use super::super::kernel_arguments::{Change, Operation};
    use super::*;

    const ID: &str = "0f2a5d3c-1111-4222-8333-444455556666";

    fn boot(architecture: Architecture) -> NetworkBoot {
        let images = HttpUrl::parse("f", "http://images.example.com:8080/").unwrap();
        NetworkBoot::new(images, InfraEnvId::parse(ID).unwrap(), "4.18", architecture).unwrap()
    }

    fn changed(changes: &[(Operation, &str)]) -> Result<String, InputError> {
        let mut boot = boot(Architecture::X86_64);
        let change = |(operation, value): &(Operation, &str)| Change::new(*operation, value);
        boot.kernel_arguments = changes.iter().map(change).collect::<Result<_, _>>()?;
        boot.script()
    }

    #[test]
    fn the_script_has_four_lines() {
        for (architecture, name) in [
            (Architecture::X86_64, "x86_64"),
            (Architecture::Arm64, "arm64"),
            (Architecture::Ppc64le, "ppc64le"),
            (Architecture::S390x, "s390x"),
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
            assert_eq!(boot(architecture).script().unwrap(), expected);
        }
    }

    #[test]
    fn credentials_go_to_the_initrd_alone_and_in_the_order_of_names() {
        let mut boot = boot(Architecture::Arm64);
        boot.credential = Some(Credential::ApiKey(Token::new("a.b&c").unwrap()));
        let script = boot.script().unwrap();
        assert!(script.contains("/pxe-initrd?api_key=a.b%26c&arch=arm64&version=4.18\n"), "{script}");
        assert_eq!(script.matches("api_key").count(), 1);
        boot.credential = Some(Credential::ImageToken(Token::new("t").unwrap()));
        assert!(boot.initrd_url().ends_with("?arch=arm64&image_token=t&version=4.18"));
        assert!(!format!("{boot:?}").contains("\"t\""));
    }

    #[test]
    fn the_redirect_keeps_the_path_of_the_service() {
        let service = HttpUrl::parse("f", "https://a.example.com/prefix/").unwrap();
        let id = InfraEnvId::parse(ID).unwrap();
        let files =
            format!("https://a.example.com/prefix/api/assisted-install/v2/infra-envs/{ID}/downloads/files");
        assert_eq!(
            redirect_script(&service, &id, None),
            format!("#!ipxe\nchain {files}?file_name=ipxe-script&mac=${{net0/mac}}\n")
        );
        let key = Credential::ApiKey(Token::new("k").unwrap());
        let expected = format!("#!ipxe\nchain {files}?api_key=k&file_name=ipxe-script&mac=${{net0/mac}}\n");
        assert_eq!(redirect_script(&service, &id, Some(&key)), expected);
        let token = Credential::ImageToken(Token::new("k").unwrap());
        assert!(redirect_script(&service, &id, Some(&token)).contains("ipxe-script&image_token=k&mac="));
    }

    #[test]
    fn kernel_arguments_change_the_line() {
        let script = changed(&[
            (Operation::Delete, "console=ttyS1,115200n8"),
            (Operation::Append, "p=\"a b\""),
            (Operation::Replace, "console=tty1=tty0"),
        ])
        .unwrap();
        let end = "console=tty0 coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\" p=\"a b\"\nboot\n";
        assert!(script.ends_with(end), "{script}");
    }

    #[test]
    fn what_ipxe_would_change_is_refused() {
        for bad in ["a=${net0/mac}", "#a", "p=\"a #b\"", "&&", "||", "p=\"a && b\"", "p=\"a  b\""] {
            let error = changed(&[(Operation::Append, bad)]).unwrap_err().to_string();
            assert!(error.starts_with("kernel_arguments "), "{error}");
        }
        assert!(changed(&[(Operation::Append, "a=#b&&$c")]).is_ok());
        let images = HttpUrl::parse("f", "http://a").unwrap();
        for bad in ["", "4.18 quiet", "4\n"] {
            let id = InfraEnvId::parse(ID).unwrap();
            assert!(NetworkBoot::new(images.clone(), id, bad, Architecture::X86_64).is_err());
        }
    }

    #[test]
    fn architectures_have_one_spelling() {
        assert_eq!("aarch64".parse::<Architecture>().unwrap().to_string(), "arm64");
        assert!("riscv64".parse::<Architecture>().is_err());
    }
}
