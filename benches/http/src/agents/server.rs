//! Starts Kindling on a prepared database.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::database::{DatabaseServer, ServerData};
use crate::base;
use crate::client::{Connection, Target};
use crate::process::STARTING;
use crate::scale::VERSION;
use crate::servers::{ReadinessCheck, RunFiles, StartedServer, Transport, launch};

/// The folder of a run: the base image, and the data directories of all servers.
#[derive(Debug, Clone)]
pub(crate) struct AgentsFolder {
    files: RunFiles,
    database: DatabaseServer,
}

impl AgentsFolder {
    /// Writes the base image.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub(crate) fn new(
        folder: &Path,
        kindling: PathBuf,
        (database, image_mib): (DatabaseServer, u64),
    ) -> Result<Self> {
        let base = folder.join("base.iso");
        eprintln!("Writing an image of {image_mib} MiB");
        base::write(&base, image_mib << 20)?;
        let files = RunFiles { folder: folder.to_owned(), kindling, nginx: PathBuf::new(), base };
        Ok(Self { files, database })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.files.folder
    }

    pub(crate) fn kindling(&self) -> &Path {
        &self.files.kindling
    }

    /// Creates an empty database.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be created.
    pub(crate) fn create(&self, name: &str) -> Result<ServerData> {
        self.database.create(self.files.folder.join(name))
    }

    /// Copies a database, which no server may have open.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be copied.
    pub(crate) fn copy(&self, name: &str, from: &ServerData) -> Result<ServerData> {
        self.database.copy(self.files.folder.join(name), from)
    }

    /// Starts a server and waits until it is ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not become ready.
    pub(crate) fn start(&self, storage: ServerData) -> Result<BenchServer> {
        let images = json!([{
            "openshift_version": VERSION, "cpu_architecture": "x86_64", "version": format!("{VERSION}-build"),
            "url": format!("file://{}", self.files.base.display()),
        }]);
        let releases = json!([{
            "openshift_version": VERSION, "cpu_architecture": "x86_64", "version": format!("{VERSION}.1"),
            "url": "quay.io/openshift-release-dev/ocp-release:bench",
        }]);
        let mut command = Command::new(&self.files.kindling);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(storage.data());
        command.env("OS_IMAGES", images.to_string()).env("RELEASE_IMAGES", releases.to_string());
        // Hosts check in only once in many minutes during a short measurement, and must not count as disconnected.
        command.env("HOST_MAX_DISCONNECTION_TIME", "24h");
        if let Some(url) = storage.url() {
            command.env("KINDLING_DATABASE_URL", url);
        }
        let ready = ReadinessCheck { path: "/ready", patience: STARTING };
        let started = launch(&self.files, &mut command, Transport::Plain, ready)?;
        Ok(BenchServer { started, storage })
    }
}

#[derive(Debug)]
pub(crate) struct BenchServer {
    // Dropped first: the server must stop before its data is removed.
    started: StartedServer,
    storage: ServerData,
}

impl BenchServer {
    pub(crate) fn target(&self) -> &Target {
        &self.started.target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.started.process.pid()
    }

    /// Returns the time from the start until the server was ready.
    pub(crate) fn ready(&self) -> Duration {
        self.started.ready
    }

    /// # Errors
    ///
    /// Returns an error if the server does not accept the connection.
    pub(crate) fn connect(&self) -> Result<Connection> {
        Connection::open(self.target())
    }

    /// Stops the server without removing its data.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has already ended.
    pub(crate) fn stop(mut self) -> Result<ServerData> {
        self.started.process.check()?;
        drop(self.started);
        ensure!(self.storage.data().exists(), "the data of a server has vanished");
        Ok(self.storage)
    }
}
