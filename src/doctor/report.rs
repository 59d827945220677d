//! What was found, as data.

use std::fmt;

use serde::Serialize;

/// Everything that was found about a URL.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The URL, without what is secret in it.
    pub url: String,
    /// Where it was redirected to, one after the other.
    pub redirects: Vec<String>,
    /// How many bytes there are, if the server says.
    pub size: Option<u64>,
    /// What the bytes are.
    pub content: Option<Content>,
    /// What was tried, and what came of it.
    pub findings: Vec<Finding>,
    /// What that means for those who read images.
    pub clients: Vec<ClientReport>,
}

impl Report {
    /// What came of a check, if it was one for this URL.
    #[must_use]
    pub fn finding(&self, check: Check) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.check == check)
    }

    /// What was found about a kind of client.
    #[must_use]
    pub fn client(&self, kind: Client) -> Option<&ClientReport> {
        self.clients.iter().find(|report| report.client == kind)
    }

    /// Whether one of the clients refuses the URL, or may for all that could be found out.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.clients.iter().any(|report| matches!(report.verdict, Verdict::Refuses | Verdict::Unknown))
    }
}

/// What came of a check.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What was tried.
    pub check: Check,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen. It may quote the server, without control characters.
    pub detail: String,
}

/// What comes of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// It is so.
    Holds,
    /// It is not so. Whether that matters depends on the client.
    Fails,
    /// It could not be found out.
    Untried,
}

/// What clients think of a URL.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClientReport {
    /// The kind of client.
    pub client: Client,
    /// What it makes of the URL.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// What a client makes of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// It reads the image.
    Works,
    /// It does, and there is something to know.
    WorksWithRemark,
    /// It does not.
    Refuses,
    /// The file is not of a kind that it reads.
    NotForIt,
    /// What decides it could not be found out.
    Unknown,
}

/// Why a client makes of a URL what it does.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// The check that it comes from.
    pub check: Check,
    /// How much it matters.
    pub weight: Weight,
    /// What the client does.
    pub why: &'static str,
    /// What was seen.
    pub detail: String,
}

/// How much a check matters to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Weight {
    /// It can do without, or only some can.
    Remark,
    /// It cannot do without.
    Refuses,
}

/// The kinds of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Client {
    /// Virtual media of management controllers, such as iDRAC, iLO and those of Supermicro.
    Bmc,
    /// The network boot loader iPXE.
    Ipxe,
    /// HTTP boot of UEFI firmware, as EDK II has it.
    Uefi,
    /// QEMU's block driver for http and https.
    Qemu,
    /// Browsers, curl and wget, which save a file and go on where they were cut off.
    Download,
    /// The first programs of CoreOS, which fetch the root file system of a minimal image.
    Rootfs,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Bmc, Self::Ipxe, Self::Uefi, Self::Qemu, Self::Download, Self::Rootfs];

    /// The name in JSON and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bmc => "bmc",
            Self::Ipxe => "ipxe",
            Self::Uefi => "uefi",
            Self::Qemu => "qemu",
            Self::Download => "download",
            Self::Rootfs => "rootfs",
        }
    }

    /// A name that people know it by.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Bmc => "BMC virtual media",
            Self::Ipxe => "iPXE",
            Self::Uefi => "UEFI HTTP boot",
            Self::Qemu => "QEMU block driver",
            Self::Download => "browser, curl",
            Self::Rootfs => "rootfs of CoreOS",
        }
    }
}

/// What the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Content {
    /// An ISO 9660 volume.
    Iso {
        /// The name of the volume.
        volume: String,
        /// Whether firmware finds something to boot on it.
        has_boot_record: bool,
    },
    /// A disk with a partition table.
    Disk,
    /// A script for iPXE.
    IpxeScript,
    /// A Linux kernel.
    Kernel,
    /// A program for UEFI.
    EfiProgram,
    /// An archive of files in memory, as kernels unpack them.
    Archive {
        /// How it is packed.
        packing: Packing,
    },
    /// A page for people.
    Page,
    /// Something else.
    Other,
}

/// How an archive is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Packing {
    /// Not at all: cpio.
    Cpio,
    /// With gzip.
    Gzip,
    /// With zstd.
    Zstd,
    /// With xz.
    Xz,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iso { volume, has_boot_record } => {
                let boot = if *has_boot_record { "that boots" } else { "without El Torito" };
                write!(f, "an ISO 9660 volume {boot}, {volume:?}")
            }
            Self::Disk => f.write_str("a disk image"),
            Self::IpxeScript => f.write_str("an iPXE script"),
            Self::Kernel => f.write_str("a Linux kernel"),
            Self::EfiProgram => f.write_str("an EFI program"),
            Self::Archive { packing: Packing::Cpio } => f.write_str("a cpio archive"),
            Self::Archive { packing: Packing::Gzip } => f.write_str("an archive packed with gzip"),
            Self::Archive { packing: Packing::Zstd } => f.write_str("an archive packed with zstd"),
            Self::Archive { packing: Packing::Xz } => f.write_str("an archive packed with xz"),
            Self::Page => f.write_str("a page of text, HTML or JSON"),
            Self::Other => f.write_str("nothing that is known to boot"),
        }
    }
}

/// Makes the names of checks, in JSON and for people, out of one list.
macro_rules! checks {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// What is tried. Each is a statement about the URL or the server that holds or not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum Check {
            $($(#[$doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Check {
            /// All of them, in the order in which they are tried.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name, in JSON and for people.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

checks! {
    /// The URL has no more than 255 characters.
    UrlShort = "url-short",
    /// The path ends with `.iso` or `.img`.
    UrlSuffix = "url-suffix",
    /// The URL has no query.
    UrlWithoutQuery = "url-without-query",
    /// The URL has no user name and no password.
    UrlWithoutPassword = "url-without-password",
    /// The URL has no token in it.
    UrlWithoutToken = "url-without-token",
    /// The port is that of the scheme.
    UrlUsualPort = "url-usual-port",
    /// The host is an address, which nobody has to resolve.
    UrlAddress = "url-address",
    /// The scheme is `https`.
    UrlEncrypted = "url-encrypted",
    /// The scheme is `http`.
    UrlUnencrypted = "url-unencrypted",
    /// The server takes connections, and TLS where that is the scheme.
    Reachable = "reachable",
    /// The server shows certificates that lead to an authority that is trusted.
    CertificateTrusted = "certificate-trusted",
    /// The certificate is for the host of the URL.
    CertificateName = "certificate-name",
    /// The certificate is valid now.
    CertificateDates = "certificate-dates",
    /// The certificate is valid for two weeks yet.
    CertificateLasts = "certificate-lasts",
    /// The server takes TLS 1.2.
    Tls12 = "tls-1.2",
    /// The key of the certificate is one of RSA.
    CertificateRsa = "certificate-rsa",
    /// Redirects, if there are any, end.
    RedirectsEnd = "redirects-end",
    /// The URL is not redirected.
    NotRedirected = "not-redirected",
    /// A redirect does not lead from https to http.
    RedirectScheme = "redirect-scheme",
    /// A request for a range is redirected to where the range is.
    RedirectRanges = "redirect-ranges",
    /// A GET is answered with 200.
    Answers = "answers",
    /// The first byte is there within five seconds.
    FirstByte = "first-byte",
    /// The answer has a length.
    Length = "length",
    /// It has as many bytes as it says.
    Complete = "complete",
    /// The answer is not in chunks.
    NotChunked = "not-chunked",
    /// Nothing is compressed on its way.
    Identity = "identity",
    /// Nor is it for a client that takes compressed bodies.
    IdentityWhenAsked = "identity-when-asked",
    /// A colon and a space follow the names of headers.
    HeaderForm = "header-form",
    /// The media type does not say that it is a text or a page.
    MediaType = "media-type",
    /// Media type or suffix tell UEFI what it is.
    UefiType = "uefi-type",
    /// A HEAD is answered with 200, and without a body.
    Head = "head",
    /// The answer to a HEAD has the length.
    HeadLength = "head-length",
    /// The answer to a HEAD has the headers of that to a GET.
    HeadSame = "head-same",
    /// The server says `Accept-Ranges: bytes`.
    AcceptRanges = "accept-ranges",
    /// A range is answered with its bytes.
    Range = "range",
    /// So is one without an end.
    RangeOpen = "range-open",
    /// So is one of the last bytes.
    RangeSuffix = "range-suffix",
    /// So are several at once.
    RangeMany = "range-many",
    /// Ranges of lengths around 64 KiB are complete.
    Range64k = "range-64k",
    /// A range behind the end is refused with 416 and the length.
    RangeBehindEnd = "range-behind-end",
    /// The answer has a strong entity tag, or a time of change.
    Validator = "validator",
    /// A range of what has changed is answered with all of it.
    IfRange = "if-range",
    /// What is known is not sent again.
    IfNoneMatch = "if-none-match",
    /// Several requests on one connection are answered.
    KeepAlive = "keep-alive",
    /// Two connections at once get what they ask for.
    Concurrent = "concurrent",
    /// Requests of HTTP/1.0 are answered.
    Http10 = "http-1.0",
    /// A request that expects 100 is answered.
    Expect = "expect",
    /// The bytes are the same when they are read again.
    SameBytes = "same-bytes",
    /// The bytes are of a kind that boots.
    Content = "content",
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A character, or how it is written where it is none that can be seen.
fn printable(character: char) -> String {
    match character {
        '"' | '\'' | '\\' => character.to_string(),
        character => character.escape_debug().to_string(),
    }
}

/// The most of what a server says that is shown.
const MAX_QUOTED: usize = 120;

/// What a server says, so that it can be shown: without control characters, and not at any length.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED).map(printable).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_no_message_to_the_terminal() {
        assert_eq!(quoted("bytes \u{1b}[2J \"0-1/2\""), "bytes \\u{1b}[2J \"0-1/2\"");
        assert_eq!(quoted(&"a".repeat(500)).len(), MAX_QUOTED + 3);
    }

    #[test]
    fn names_are_those_of_json() {
        for check in Check::ALL {
            assert_eq!(serde_json::to_value(check).unwrap(), check.name());
        }
        for client in Client::ALL {
            assert_eq!(serde_json::to_value(client).unwrap(), client.name());
        }
    }
}
