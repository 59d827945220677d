//! Images, libraries and directories for tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use fixtures::{Architecture, Era, Recipe};
use isogen::Digest;
use kindling::images::library::{BaseImageState, ImageNotReady, Library, LibrarySettings, RetryPolicy};
use kindling::inventory::catalogue::{CpuArchitecture, ImageType, OsImage};
use tempfile::TempDir;

pub(crate) const NAME: &str = "rhcos-full-iso-414.92.1-x86_64.iso";

/// Returns the first of two different images of the same length.
pub(crate) fn first_image() -> &'static [u8] {
    static IMAGE: LazyLock<Vec<u8>> =
        LazyLock::new(|| Recipe::new(Architecture::X86_64, Era::E2024_12).build());
    &IMAGE
}

/// Returns another version of [`first_image`], of the same length.
pub(crate) fn second_image() -> &'static [u8] {
    static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes = first_image().to_vec();
        // In the noise of the root file system, after all structures.
        let at = bytes.len() / 2;
        bytes[at] ^= 0xFF;
        bytes
    });
    &IMAGE
}

/// Returns an image for another architecture than the architecture of [`os_image`].
pub(crate) fn arm_image() -> &'static [u8] {
    static IMAGE: LazyLock<Vec<u8>> =
        LazyLock::new(|| Recipe::new(Architecture::Aarch64, Era::E2024_12).build());
    &IMAGE
}

/// Returns an image for 64-bit Arm whose files do not reveal its architecture.
pub(crate) fn image_without_architecture() -> Vec<u8> {
    let mut bytes = arm_image().to_vec();
    // The name in the directory, and in its Rock Ridge extension.
    for name in [&b"EFIBOOT.IMG"[..], b"efiboot.img"] {
        let positions = bytes.windows(name.len()).enumerate().filter(|(_, window)| *window == name);
        for at in positions.map(|(at, _)| at).collect::<Vec<_>>() {
            bytes[at] = if name[0] == b'E' { b'X' } else { b'x' };
        }
    }
    bytes
}

pub(crate) fn os_image(url: &str) -> OsImage {
    OsImage {
        openshift_version: "4.14".to_owned(),
        cpu_architecture: CpuArchitecture::X86_64,
        url: url.to_owned(),
        version: "414.92.1".to_owned(),
        image_type: ImageType::Full,
        sha256: None,
    }
}

/// Adds the digest of [`first_image`] to the entry.
pub(crate) fn with_digest(image: OsImage) -> OsImage {
    OsImage { sha256: Some(Digest::from_data(self::first_image())), ..image }
}

/// A directory for a library.
pub(crate) struct LibraryFolder {
    directory: TempDir,
}

impl LibraryFolder {
    pub(crate) fn new() -> Self {
        // The test prints the library's log if it fails.
        let _ = tracing_subscriber::fmt().with_test_writer().with_max_level(tracing::Level::DEBUG).try_init();
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(base).unwrap();
        Self { directory: TempDir::with_prefix_in("library-", base).unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Asserts that the directory has only the image and its record.
    #[track_caller]
    pub(crate) fn assert_has_only_image(&self, bytes: &[u8]) {
        assert!(self.read(NAME) == bytes, "a different image");
        assert_eq!(self.names(), BTreeSet::from([NAME.to_owned(), format!("{NAME}.json")]));
    }

    /// Asserts that the directory has neither an image nor a partial file.
    #[track_caller]
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.names(), BTreeSet::new());
    }

    pub(crate) fn settings(&self) -> LibrarySettings {
        let mut settings = LibrarySettings::new(self.path());
        settings.retry = RetryPolicy {
            at_once: 2,
            first_pause: Duration::from_millis(10),
            // Long enough for tests to observe a failure.
            longest_pause: Duration::from_millis(20),
        };
        settings.stall = Duration::from_secs(20);
        settings.recheck = Duration::from_millis(50);
        settings
    }

    /// Settings that delay retries, so that a test can inspect the directory after a failure.
    pub(crate) fn patient_settings(&self) -> LibrarySettings {
        let mut settings = self.settings();
        settings.retry.at_once = 0;
        settings.retry.first_pause = Duration::from_secs(3600);
        settings.retry.longest_pause = Duration::from_secs(3600);
        settings
    }

    pub(crate) fn open(&self, images: impl IntoIterator<Item = OsImage>) -> Library {
        Library::open(self.settings(), images).unwrap()
    }

    pub(crate) fn open_patiently(&self, images: impl IntoIterator<Item = OsImage>) -> Library {
        Library::open(self.patient_settings(), images).unwrap()
    }
}

/// Waits for a future, with a time limit.
pub(crate) async fn within_time_limit<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("timed out")
}

/// Waits until the state of an image fulfils a condition.
pub(crate) async fn wait_for_state(
    library: &Library,
    image: &OsImage,
    is_done: impl Fn(&BaseImageState) -> bool,
) -> BaseImageState {
    let mut changes = library.state_changes();
    within_time_limit(async {
        loop {
            let state = library.state(image).unwrap();
            if is_done(&state) {
                return state;
            }
            changes.changed().await.unwrap();
        }
    })
    .await
}

/// Returns the reason why an image is unavailable.
#[track_caller]
pub(crate) fn unavailability_reason<T: std::fmt::Debug>(outcome: Result<T, ImageNotReady>) -> String {
    match outcome {
        Err(ImageNotReady::Failed { reason, .. }) => reason,
        outcome => panic!("not a failure: {outcome:?}"),
    }
}
