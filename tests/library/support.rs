//! Images, libraries and directories for tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use fixtures::{Architecture, Era, Recipe};
use isogen::Digest;
use kindling::images::library::{Library, LibrarySettings, NotReady, RetryPolicy, State};
use kindling::images::{CpuArchitecture, ImageType, OsImage};
use tempfile::TempDir;

/// The name of the file of [`os_image`].
pub(crate) const NAME: &str = "rhcos-full-iso-414.92.1-x86_64.iso";

/// Two images of the same length that differ.
pub(crate) fn image() -> &'static [u8] {
    static IMAGE: LazyLock<Vec<u8>> =
        LazyLock::new(|| Recipe::new(Architecture::X86_64, Era::E2024_12).build());
    &IMAGE
}

/// Another version of [`image`], of the same length.
pub(crate) fn other_image() -> &'static [u8] {
    static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes = image().to_vec();
        // Past the structures: within the noise of the root file system.
        let at = bytes.len() / 2;
        bytes[at] ^= 0xFF;
        bytes
    });
    &IMAGE
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

/// With the digest that [`image`] has.
pub(crate) fn with_digest(image: OsImage) -> OsImage {
    OsImage { sha256: Some(Digest::of(self::image())), ..image }
}

/// A directory for a library.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        // What the library tells is shown with a test that fails.
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

    /// Nothing but the image and what is known of it.
    #[track_caller]
    pub(crate) fn assert_holds(&self, bytes: &[u8]) {
        assert!(self.read(NAME) == bytes, "another image");
        assert_eq!(self.names(), BTreeSet::from([NAME.to_owned(), format!("{NAME}.json")]));
    }

    /// Neither an image nor anything that could be taken for a part of one.
    #[track_caller]
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.names(), BTreeSet::new());
    }

    pub(crate) fn settings(&self) -> LibrarySettings {
        let mut settings = LibrarySettings::new(self.path());
        settings.retry = RetryPolicy {
            at_once: 2,
            first_pause: Duration::from_millis(10),
            // Failures stay to be looked at.
            longest_pause: Duration::from_millis(20),
        };
        settings.stall = Duration::from_secs(20);
        settings.recheck = Duration::from_millis(50);
        settings
    }

    /// Failed images are not tried again while a test looks at what is left.
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

/// Something that happens in a while, or never.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it does not happen")
}

/// Waits until an image is in a state.
pub(crate) async fn until(library: &Library, image: &OsImage, wanted: impl Fn(&State) -> bool) -> State {
    let mut changes = library.changes();
    soon(async {
        loop {
            let state = library.state(image).unwrap();
            if wanted(&state) {
                return state;
            }
            changes.changed().await.unwrap();
        }
    })
    .await
}

/// The reason for which an image cannot be had.
#[track_caller]
pub(crate) fn reason<T: std::fmt::Debug>(outcome: Result<T, NotReady>) -> String {
    match outcome {
        Err(NotReady::Failed { reason, .. }) => reason,
        outcome => panic!("no failure: {outcome:?}"),
    }
}
