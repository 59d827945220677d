//! The data types for the report of an examination.

use std::fmt;

use serde::Serialize;

/// The results of examining a URL.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DoctorReport {
    /// The examined URL, with its secrets masked.
    pub url: String,
    /// The URLs to which the server redirected, in order.
    pub redirects: Vec<String>,
    /// Size of the file in bytes, if the server reports it.
    pub size: Option<u64>,
    /// The type of the file. `None` if no GET succeeded.
    pub content: Option<ContentKind>,
    /// The results of all checks that apply to this URL.
    pub findings: Vec<DoctorFinding>,
    /// The verdict for each kind of client.
    pub clients: Vec<ClientReport>,
}

impl DoctorReport {
    /// Returns the result of a check, if it applies to this URL.
    #[must_use]
    pub fn finding(&self, check: DoctorCheck) -> Option<&DoctorFinding> {
        self.findings.iter().find(|finding| finding.check == check)
    }

    /// Returns the verdict for a kind of client.
    #[must_use]
    pub fn client(&self, kind: ClientKind) -> Option<&ClientReport> {
        self.clients.iter().find(|report| report.client == kind)
    }

    /// Returns `true` if a client refuses the URL, or if it may refuse it because a check could not be run.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.clients
            .iter()
            .any(|report| matches!(report.verdict, ClientVerdict::Refuses | ClientVerdict::Unknown))
    }
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DoctorFinding {
    /// The check, which is a statement such as "the path ends with `.iso`".
    pub check: DoctorCheck,
    /// Whether the statement is true.
    pub outcome: CheckOutcome,
    /// Details, such as a status code. They may quote the server, without control characters.
    pub detail: String,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckOutcome {
    /// The statement of the check is true.
    Holds,
    /// The statement is false. The consequences depend on the client.
    Fails,
    /// The check could not be run.
    Untried,
}

/// The verdict for one kind of client.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClientReport {
    /// Which clients the verdict applies to.
    pub client: ClientKind,
    /// Whether the clients can use the URL.
    pub verdict: ClientVerdict,
    /// The failed checks behind the verdict, the most important first.
    pub reasons: Vec<VerdictReason>,
}

/// The verdict on whether a kind of client can use a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClientVerdict {
    /// The client reads the image.
    Works,
    /// The client reads the image, but a failed check causes a remark.
    WorksWithRemark,
    /// The client refuses the URL.
    Refuses,
    /// The client does not use files of this type.
    NotForIt,
    /// A required check could not be run.
    Unknown,
}

/// A failed check that affects the verdict.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VerdictReason {
    /// The check that failed.
    pub check: DoctorCheck,
    /// Whether the client refuses the URL because of this check.
    pub weight: RequirementLevel,
    /// The consequence for the client.
    pub why: &'static str,
    /// The details from the check's finding.
    pub detail: String,
}

/// How important a check is for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RequirementLevel {
    /// The client does not require the check, or only some clients do.
    Remark,
    /// The client refuses the URL if the check fails.
    Refuses,
}

/// A kind of client that reads images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClientKind {
    /// Virtual media of BMCs, such as iDRAC, iLO and Supermicro.
    Bmc,
    /// The network boot loader iPXE.
    Ipxe,
    /// HTTP boot in UEFI firmware, as in EDK II.
    Uefi,
    /// QEMU's block driver for http and https.
    Qemu,
    /// Browsers, curl and wget, which save a file and resume interrupted downloads.
    Download,
    /// The initrd of CoreOS, which downloads the root file system for a minimal ISO.
    Rootfs,
}

impl ClientKind {
    /// All kinds, in the order of the report.
    pub const ALL: [Self; 6] = [Self::Bmc, Self::Ipxe, Self::Uefi, Self::Qemu, Self::Download, Self::Rootfs];

    /// Returns the name in JSON and on the command line, such as `bmc`.
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

    /// Returns the name in the printed report, such as `BMC virtual media`.
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

/// The type of a file, detected from its first bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum ContentKind {
    /// An ISO 9660 volume.
    Iso {
        /// The volume identifier, without control characters.
        volume: String,
        /// Whether the volume has an El Torito boot record.
        has_boot_record: bool,
    },
    /// A disk with a partition table.
    Disk,
    /// A script for iPXE.
    IpxeScript,
    /// A Linux kernel.
    Kernel,
    /// A UEFI program.
    EfiProgram,
    /// An initrd archive.
    Archive {
        /// The compression format of the archive.
        packing: ArchiveCompression,
    },
    /// A text file, for example an HTML or JSON page.
    Page,
    /// Any other type of file.
    Other,
}

/// The compression of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ArchiveCompression {
    /// An uncompressed cpio archive.
    Cpio,
    /// Compressed with gzip.
    Gzip,
    /// Compressed with zstd.
    Zstd,
    /// Compressed with xz.
    Xz,
}

impl fmt::Display for ContentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iso { volume, has_boot_record } => {
                let boot = if *has_boot_record { "that boots" } else { "without an El Torito boot record" };
                write!(f, "an ISO 9660 volume {boot}, {volume:?}")
            }
            Self::Disk => f.write_str("a disk image"),
            Self::IpxeScript => f.write_str("an iPXE script"),
            Self::Kernel => f.write_str("a Linux kernel"),
            Self::EfiProgram => f.write_str("an EFI program"),
            Self::Archive { packing: ArchiveCompression::Cpio } => f.write_str("a cpio archive"),
            Self::Archive { packing: ArchiveCompression::Gzip } => {
                f.write_str("an archive compressed with gzip")
            }
            Self::Archive { packing: ArchiveCompression::Zstd } => {
                f.write_str("an archive compressed with zstd")
            }
            Self::Archive { packing: ArchiveCompression::Xz } => f.write_str("an archive compressed with xz"),
            Self::Page => f.write_str("a text, HTML or JSON page"),
            Self::Other => f.write_str("an unknown type of file"),
        }
    }
}

/// Defines the checks and their names from one list.
macro_rules! checks {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// A check: a statement about the URL or the server that is true or false.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum DoctorCheck {
            $($(#[$doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl DoctorCheck {
            /// All checks, in the order of the report.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name in JSON and in the printed report, such as `url-short`.
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
    /// The URL has at most 255 characters.
    UrlShort = "url-short",
    /// The path ends with `.iso` or `.img`.
    UrlSuffix = "url-suffix",
    /// The URL has no query.
    UrlWithoutQuery = "url-without-query",
    /// The URL has no user name and no password.
    UrlWithoutPassword = "url-without-password",
    /// The URL contains no token.
    UrlWithoutToken = "url-without-token",
    /// The URL uses the default port of its scheme.
    UrlUsualPort = "url-usual-port",
    /// The host is an IP address, so that no name is resolved.
    UrlAddress = "url-address",
    /// The scheme is `https`.
    UrlEncrypted = "url-encrypted",
    /// The scheme is `http`.
    UrlUnencrypted = "url-unencrypted",
    /// The server accepts connections, and TLS connections for `https`.
    Reachable = "reachable",
    /// The server's certificate chain ends at a trusted authority.
    CertificateTrusted = "certificate-trusted",
    /// The certificate is for the host of the URL.
    CertificateName = "certificate-name",
    /// The certificate is valid now.
    CertificateDates = "certificate-dates",
    /// The certificate stays valid for at least two more weeks.
    CertificateLasts = "certificate-lasts",
    /// The server supports TLS 1.2.
    Tls12 = "tls-1.2",
    /// The server signs with an RSA key.
    CertificateRsa = "certificate-rsa",
    /// The redirects end at a response.
    RedirectsEnd = "redirects-end",
    /// The URL is not redirected.
    NotRedirected = "not-redirected",
    /// No redirect leads from https to http.
    RedirectScheme = "redirect-scheme",
    /// A range request is redirected, too, and returns the same range.
    RedirectRanges = "redirect-ranges",
    /// The status of a GET is 200.
    Answers = "answers",
    /// The response begins within five seconds.
    FirstByte = "first-byte",
    /// The response has a `Content-Length`.
    Length = "length",
    /// The body has the announced length.
    Complete = "complete",
    /// The response does not use the chunked transfer coding.
    NotChunked = "not-chunked",
    /// The body is not compressed.
    Identity = "identity",
    /// The body is not compressed even if the client accepts compression.
    IdentityWhenAsked = "identity-when-asked",
    /// A space follows the colon in each header.
    HeaderForm = "header-form",
    /// The media type is not a text type.
    MediaType = "media-type",
    /// The media type or the file name suffix identifies the file for UEFI.
    UefiType = "uefi-type",
    /// The status of a HEAD is 200, and the response has no body.
    Head = "head",
    /// The response to a HEAD has a `Content-Length`.
    HeadLength = "head-length",
    /// The responses to HEAD and GET have the same headers.
    HeadSame = "head-same",
    /// The server sends `Accept-Ranges: bytes`.
    AcceptRanges = "accept-ranges",
    /// A range request returns the requested bytes.
    Range = "range",
    /// A range without a last byte is supported.
    RangeOpen = "range-open",
    /// A suffix range is supported.
    RangeSuffix = "range-suffix",
    /// Several ranges in one request are supported.
    RangeMany = "range-many",
    /// Ranges with lengths around 64 KiB are complete.
    Range64k = "range-64k",
    /// The response to a range after the end is 416 with the length of the image.
    RangeBehindEnd = "range-behind-end",
    /// The response has a strong entity tag or a modification time.
    Validator = "validator",
    /// If the image has changed, a range request with `If-Range` returns the whole image.
    IfRange = "if-range",
    /// If the image is unchanged, a conditional GET returns 304.
    IfNoneMatch = "if-none-match",
    /// Several requests on one connection succeed.
    KeepAlive = "keep-alive",
    /// Requests on two concurrent connections succeed.
    Concurrent = "concurrent",
    /// HTTP/1.0 requests succeed.
    Http10 = "http-1.0",
    /// A request with `Expect: 100-continue` succeeds.
    Expect = "expect",
    /// A second read returns the same bytes.
    SameBytes = "same-bytes",
    /// The file has a bootable type.
    Content = "content",
    /// Machines that boot the image can reach the service with which they register.
    ServiceUrl = "service-url",
}

impl fmt::Display for DoctorCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns the character, or its escape sequence if it is not printable.
fn escape_unprintable(character: char) -> String {
    match character {
        '"' | '\'' | '\\' => character.to_string(),
        character => character.escape_debug().to_string(),
    }
}

/// Maximum number of characters to quote from a server's text.
const MAX_QUOTED: usize = 120;

/// Quotes a text of the server without control characters, shortened to [`MAX_QUOTED`].
pub(super) fn quote_for_report(text: &str) -> String {
    let mut quoted: String = text.chars().take(MAX_QUOTED).map(escape_unprintable).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        quoted.push_str("...");
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_has_no_control_characters() {
        assert_eq!(quote_for_report("bytes \u{1b}[2J \"0-1/2\""), "bytes \\u{1b}[2J \"0-1/2\"");
        assert_eq!(quote_for_report(&"a".repeat(500)).len(), MAX_QUOTED + 3);
    }

    #[test]
    fn check_and_client_names_equal_their_json() {
        for check in DoctorCheck::ALL {
            assert_eq!(serde_json::to_value(check).unwrap(), check.name());
        }
        for client in ClientKind::ALL {
            assert_eq!(serde_json::to_value(client).unwrap(), client.name());
        }
    }
}
