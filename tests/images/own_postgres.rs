//! A PostgreSQL server that a test can stop and start.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::database::postgres_url;

/// A server on its own port, with an empty database. It stops when the value is dropped.
pub(crate) struct OwnPostgres {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
}

impl OwnPostgres {
    /// Starts a server; `None` if PostgreSQL is not installed and not required.
    pub(crate) fn start_new() -> Option<Self> {
        // Fails if PostgreSQL is required and missing.
        postgres_url()?;
        let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let programs = installed.map(|entry| entry.unwrap().path().join("bin")).max()?;
        let directory = TempDir::new().unwrap();
        // PostgreSQL runs as another user, which must be able to reach the directory.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { directory, programs, port };
        server.pg_ctl(&["initdb", "--options", "--auth=trust --encoding=UTF8 --no-sync --username=postgres"]);
        server.start();
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(crate) fn start(&self) {
        let path = self.directory.path().display();
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={path} -c fsync=off",
            self.port
        );
        self.pg_ctl(&["start", "--wait", "--log", &format!("{path}/log"), "--options", &options]);
    }

    /// Stops the server like a crash.
    pub(crate) fn stop(&self) {
        self.pg_ctl(&["stop", "--mode", "immediate"]);
    }

    #[track_caller]
    fn pg_ctl(&self, arguments: &[&str]) {
        assert!(self.command(arguments).status().unwrap().success(), "{arguments:?}");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let program = self.programs.join("pg_ctl");
        // PostgreSQL refuses to run as root.
        let mut command = if rustix::process::getuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.arg("--silent").arg("--pgdata").arg(self.directory.path().join("data")).args(arguments);
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        // The test may already have stopped the server.
        let _ = self.command(&["stop", "--mode", "immediate"]).stderr(Stdio::null()).status();
    }
}
