//! Starts Kindling with the data of one size.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::base;
use crate::client::{Connection, Target};
use crate::options::ScaleOptions;
use crate::servers::{ReadinessCheck, RunFiles, StartedServer, Transport, launch};
use crate::usage::Memory;
use crate::work::Size;

/// The OpenShift version of a base image. Hosts of this version take keyfiles, which Kindling generates from nmstate.
pub(crate) const VERSION: &str = "4.14";
/// Maximum time for hashing all base images. The longest one is 64 GiB.
const READING: Duration = Duration::from_secs(1800);

#[derive(Debug)]
pub(crate) struct RunFolder {
    place: RunFiles,
    pub(crate) size: Size,
    /// Duration of a measurement of rates.
    pub(crate) time: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct BenchBaseImage {
    pub(crate) openshift_version: String,
    pub(crate) path: PathBuf,
}

/// The data directory and the base images of a server.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) data: PathBuf,
    pub(crate) images: Vec<BenchBaseImage>,
}

impl RunFolder {
    /// Prepares a folder with a base image of a typical length.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub(crate) fn new(folder: &Path, kindling: PathBuf, options: &ScaleOptions) -> Result<Self> {
        let place = RunFiles {
            folder: folder.to_owned(),
            kindling,
            nginx: PathBuf::new(),
            base: folder.join("base.iso"),
        };
        let size = options.size();
        let mib: u64 = if size == Size::Full { 1024 } else { 16 };
        eprintln!("Writing an image of {mib} MiB");
        base::write(&place.base, mib << 20)?;
        Ok(Self { place, size, time: options.time() })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    /// Returns a setup with only the base image of the run, and with a data directory of the given name.
    pub(crate) fn setting(&self, name: &str) -> Setting {
        let base = BenchBaseImage { openshift_version: VERSION.to_owned(), path: self.place.base.clone() };
        Setting { data: self.path(name), images: vec![base] }
    }

    /// Starts a server and waits until its base images are ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not become ready.
    pub(crate) fn start(&self, setting: &Setting) -> Result<Server> {
        let images: Vec<Value> = setting.images.iter().map(BenchBaseImage::os_image_entry).collect();
        let mut command = Command::new(&self.place.kindling);
        command.args(["serve", "--listen", "127.0.0.1:0", "--fetch-images", "at-start", "--data-dir"]);
        command.arg(&setting.data).env("OS_IMAGES", Value::from(images).to_string());
        let ready = ReadinessCheck { path: "/health", patience: READING };
        Ok(Server(launch(&self.place, &mut command, Transport::Plain, ready)?))
    }
}

impl BenchBaseImage {
    /// Returns the base image's entry in the list of OS images.
    fn os_image_entry(&self) -> Value {
        json!({
            "openshift_version": self.openshift_version, "cpu_architecture": "x86_64",
            "version": format!("{}-build", self.openshift_version),
            "url": format!("file://{}", self.path.display()),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Server(StartedServer);

impl Server {
    pub(crate) fn target(&self) -> &Target {
        &self.0.target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.process.pid()
    }

    pub(crate) fn ready(&self) -> Duration {
        self.0.ready
    }

    /// # Errors
    ///
    /// Returns an error if the server does not accept the connection.
    pub(crate) fn connect(&self) -> Result<Connection> {
        Connection::open(self.target())
    }

    /// # Errors
    ///
    /// Returns an error if the server has ended.
    pub(crate) fn memory(&self) -> Result<Memory> {
        Memory::read(self.pid())
    }
}
