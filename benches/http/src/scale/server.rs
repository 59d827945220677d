//! Kindling with what it has to work with.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::base;
use crate::client::{Connection, Target};
use crate::options::ScaleOptions;
use crate::servers::{Awaited, Place, Started, Transport, launch};
use crate::usage::Memory;
use crate::work::Size;

/// The version of OpenShift that a live image is for. Machines of this one take keyfiles, which are made of nmstate here.
pub(crate) const VERSION: &str = "4.14";
/// How long all live images may take to be read for the first time: one of 64 GiB is.
const READING: Duration = Duration::from_secs(1800);

/// What all measurements have in common.
#[derive(Debug)]
pub(crate) struct House {
    place: Place,
    pub(crate) size: Size,
    /// How long a measurement of rates takes.
    pub(crate) time: Duration,
}

/// A live image that a server has.
#[derive(Debug, Clone)]
pub(crate) struct LiveImage {
    pub(crate) openshift_version: String,
    pub(crate) path: PathBuf,
}

/// Where a server has what it keeps, and which live images.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) data: PathBuf,
    pub(crate) images: Vec<LiveImage>,
}

impl House {
    /// Writes a live image of a length that images usually have.
    ///
    /// # Errors
    ///
    /// When there is no room.
    pub(crate) fn new(folder: &Path, kindling: PathBuf, options: &ScaleOptions) -> Result<Self> {
        let place = Place {
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

    /// A path in the folder of the run.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    /// A server with nothing but the one live image; its data are to be in a folder of this name.
    pub(crate) fn setting(&self, name: &str) -> Setting {
        let base = LiveImage { openshift_version: VERSION.to_owned(), path: self.place.base.clone() };
        Setting { data: self.path(name), images: vec![base] }
    }

    /// Starts a server, and waits until its live images can be used.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub(crate) fn start(&self, setting: &Setting) -> Result<Server> {
        let images: Vec<Value> = setting.images.iter().map(LiveImage::listed).collect();
        let mut command = Command::new(&self.place.kindling);
        command.args(["serve", "--listen", "127.0.0.1:0", "--fetch-images", "at-start", "--data-dir"]);
        command.arg(&setting.data).env("OS_IMAGES", Value::from(images).to_string());
        let ready = Awaited { path: "/health", patience: READING };
        Ok(Server(launch(&self.place, &mut command, Transport::Plain, ready)?))
    }
}

impl LiveImage {
    /// As the list of live images has it.
    fn listed(&self) -> Value {
        json!({
            "openshift_version": self.openshift_version, "cpu_architecture": "x86_64",
            "version": format!("{}-build", self.openshift_version),
            "url": format!("file://{}", self.path.display()),
        })
    }
}

/// A running server, which is ended with whoever holds it.
#[derive(Debug)]
pub(crate) struct Server(Started);

impl Server {
    pub(crate) fn target(&self) -> &Target {
        &self.0.target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.process.pid()
    }

    /// From its start until its live images could be used.
    pub(crate) fn ready(&self) -> Duration {
        self.0.ready
    }

    /// # Errors
    ///
    /// When it does not answer.
    pub(crate) fn connect(&self) -> Result<Connection> {
        Connection::open(self.target())
    }

    /// # Errors
    ///
    /// When it has ended.
    pub(crate) fn memory(&self) -> Result<Memory> {
        Memory::of(self.pid())
    }
}
