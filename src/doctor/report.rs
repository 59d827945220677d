//! The report, as data.

use std::fmt;

use serde::Serialize;

/// The result of examining a URL.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DoctorReport {
    /// The URL without its secrets.
    pub url: String,
    /// The targets of redirects, in order.
    pub redirects: Vec<String>,
    /// Size of the file in bytes, if the server reports it.
    pub size: Option<u64>,
    /// The type of the file.
    pub content: Option<ContentKind>,
    /// The results of the checks.
    pub findings: Vec<DoctorFinding>,
    /// The verdicts of the kinds of clients.
    pub clients: Vec<ClientReport>,
}

impl DoctorReport {
    /// Returns the result of a check, if it was run for this URL.
    #[must_use]
    pub fn finding(&self, check: DoctorCheck) -> Option<&DoctorFinding> {
        self.findings.iter().find(|finding| finding.check == check)
    }

    /// Returns the verdict of a kind of client.
    #[must_use]
    pub fn client(&self, kind: ClientKind) -> Option<&ClientReport> {
        self.clients.iter().find(|report| report.client == kind)
    }

    /// Returns whether a client refuses the URL, or may refuse it because a check could not be run.
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
    /// The check.
    pub check: DoctorCheck,
    /// Its outcome.
    pub outcome: CheckOutcome,
    /// Details. They may quote the server, without control characters.
    pub detail: String,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckOutcome {
    /// The statement of the check is true.
    Holds,
    /// The statement is false. Whether that matters depends on the client.
    Fails,
    /// The check could not be run.
    Untried,
}

/// The verdict of one kind of client.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClientReport {
    /// The kind of client.
    pub client: ClientKind,
    /// Whether the client can use the URL.
    pub verdict: ClientVerdict,
    /// The failed checks that explain the verdict.
    pub reasons: Vec<VerdictReason>,
}

/// Whether a kind of client can use a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClientVerdict {
    /// The client reads the image.
    Works,
    /// The client reads the image, with remarks.
    WorksWithRemark,
    /// The client refuses the URL.
    Refuses,
    /// The client does not use files of this type.
    NotForIt,
    /// A check on which the verdict depends could not be run.
    Unknown,
}

/// One reason for a verdict.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VerdictReason {
    /// The failed check.
    pub check: DoctorCheck,
    /// Its weight for the client.
    pub weight: RequirementLevel,
    /// Why the check matters to the client.
    pub why: &'static str,
    /// Details of the check.
    pub detail: String,
}

/// The weight of a check for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RequirementLevel {
    /// The client does not require it, or only some clients do.
    Remark,
    /// The client requires it.
    Refuses,
}

/// The kinds of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClientKind {
    /// Virtual media of BMCs, such as iDRAC, iLO and those of Supermicro.
    Bmc,
    /// The network boot loader iPXE.
    Ipxe,
    /// HTTP boot of UEFI firmware, as in EDK II.
    Uefi,
    /// QEMU's block driver for http and https.
    Qemu,
    /// Browsers, curl and wget, which save a file and resume interrupted downloads.
    Download,
    /// The initrd of CoreOS, which downloads the root file system of a minimal ISO.
    Rootfs,
}

impl ClientKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 6] = [Self::Bmc, Self::Ipxe, Self::Uefi, Self::Qemu, Self::Download, Self::Rootfs];

    /// Returns the name in JSON and on command lines.
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

    /// Returns the name in printed reports.
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

/// The type of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum ContentKind {
    /// An ISO 9660 volume.
    Iso {
        /// The volume identifier.
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
        /// Its compression.
        packing: ArchiveCompression,
    },
    /// A text, such as an HTML or JSON page.
    Page,
    /// Anything else.
    Other,
}

/// The compression of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ArchiveCompression {
    /// Uncompressed cpio.
    Cpio,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// xz.
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
            /// All checks, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name in JSON and in printed reports.
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
    /// The server accepts connections, and TLS for `https`.
    Reachable = "reachable",
    /// The server's certificate chain leads to a trusted authority.
    CertificateTrusted = "certificate-trusted",
    /// The certificate is for the host of the URL.
    CertificateName = "certificate-name",
    /// The certificate is valid now.
    CertificateDates = "certificate-dates",
    /// The certificate is valid for at least two more weeks.
    CertificateLasts = "certificate-lasts",
    /// The server supports TLS 1.2.
    Tls12 = "tls-1.2",
    /// The server signs with an RSA key.
    CertificateRsa = "certificate-rsa",
    /// Redirects lead to a response.
    RedirectsEnd = "redirects-end",
    /// The URL is not redirected.
    NotRedirected = "not-redirected",
    /// No redirect leads from https to http.
    RedirectScheme = "redirect-scheme",
    /// A range request is redirected to the same range.
    RedirectRanges = "redirect-ranges",
    /// A GET is answered with 200.
    Answers = "answers",
    /// The response begins within five seconds.
    FirstByte = "first-byte",
    /// The response has a `Content-Length`.
    Length = "length",
    /// The body is as long as announced.
    Complete = "complete",
    /// The response does not use chunked transfer coding.
    NotChunked = "not-chunked",
    /// The body is not compressed.
    Identity = "identity",
    /// The body is not compressed for a client that accepts compression either.
    IdentityWhenAsked = "identity-when-asked",
    /// Header names are followed by a colon and a space.
    HeaderForm = "header-form",
    /// The media type is not a text type.
    MediaType = "media-type",
    /// The media type or the suffix identifies the file for UEFI.
    UefiType = "uefi-type",
    /// A HEAD is answered with 200 and without a body.
    Head = "head",
    /// The response to a HEAD has a `Content-Length`.
    HeadLength = "head-length",
    /// The responses to HEAD and GET have the same headers.
    HeadSame = "head-same",
    /// The server sends `Accept-Ranges: bytes`.
    AcceptRanges = "accept-ranges",
    /// A range request is answered with its bytes.
    Range = "range",
    /// A range without an end is answered.
    RangeOpen = "range-open",
    /// A suffix range is answered.
    RangeSuffix = "range-suffix",
    /// Several ranges in one request are answered.
    RangeMany = "range-many",
    /// Ranges of lengths around 64 KiB are complete.
    Range64k = "range-64k",
    /// A range after the end is refused with 416 and the length.
    RangeBehindEnd = "range-behind-end",
    /// The response has a strong entity tag or a modification time.
    Validator = "validator",
    /// A range of a changed image (`If-Range`) is answered with the whole image.
    IfRange = "if-range",
    /// A conditional GET of an unchanged image is answered with 304.
    IfNoneMatch = "if-none-match",
    /// Several requests on one connection are answered.
    KeepAlive = "keep-alive",
    /// Requests on two concurrent connections are answered.
    Concurrent = "concurrent",
    /// HTTP/1.0 requests are answered.
    Http10 = "http-1.0",
    /// A request with `Expect: 100-continue` is answered.
    Expect = "expect",
    /// A second read returns the same bytes.
    SameBytes = "same-bytes",
    /// The file is of a type that boots.
    Content = "content",
    /// Machines that boot the image can reach the service to which they register.
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

/// Most characters of a server's text that are shown.
const MAX_QUOTED: usize = 120;

/// Returns a server's text without control characters, shortened to [`MAX_QUOTED`].
pub(super) fn quote_for_report(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED).map(escape_unprintable).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push_str("...");
    }
    shown
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
