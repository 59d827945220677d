//! Downloads the logs of a host, of a cluster's controller, or of a whole cluster.

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use super::path::{path_of_controller, path_of_host};
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::files::{FileError, FileInfo, FilePath, FileStore, OpenFile};
use crate::host::HostRecord;
use crate::id::{ClusterId, HostId};
use crate::store::{Filter, Kind};
use crate::{Inventory, tar};

/// The logs that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedLogs {
    Host(HostId),
    Controller,
    All,
}

/// A log file, with its name in downloads and archives.
#[derive(Clone, Debug)]
struct LogFile {
    path: FilePath,
    name: String,
}

/// The content of a download, as a stream of chunks.
type Content = BoxStream<'static, Result<Bytes, FileError>>;

/// A single log file, or an archive of several.
pub(crate) struct LogsDownload {
    /// The file name for the client, which contains only characters that are valid in HTTP headers.
    pub(crate) name: String,
    /// The length in bytes. `None` for an archive.
    pub(crate) len: Option<u64>,
    pub(crate) content: Content,
}

impl Inventory {
    /// Returns a single log file unchanged, or an archive of all log files.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster or host does not exist, if no logs are available yet, or if the database or the
    /// file storage fails.
    pub(crate) async fn logs(
        &self,
        cluster: ClusterId,
        requested: RequestedLogs,
    ) -> Result<LogsDownload, Error> {
        let cluster = self.cluster(cluster).await?;
        let one = match requested {
            RequestedLogs::All => return archive_of_all_logs(self, &cluster).await,
            RequestedLogs::Controller => controller_log_file(&cluster)?,
            RequestedLogs::Host(id) => {
                host_log_file(&cluster, &self.host_in_cluster(cluster.id, id, None).await?)?
            }
        };
        let file = self.files().get(&one.path).await?;
        let file = file.ok_or_else(|| Error::conflict(format!("Logs {} are not available yet", one.name)))?;
        let name = format!("{}_{}", safe_file_name(&cluster.spec.name), one.name);
        Ok(LogsDownload { name, len: Some(file.info.len), content: file.content })
    }
}

async fn archive_of_all_logs(inventory: &Inventory, cluster: &ClusterRecord) -> Result<LogsDownload, Error> {
    let mut files = vec![controller_log_file(cluster)?];
    let filter = Filter::all(Kind::Host).of_cluster(cluster.id.0);
    let mut hosts = inventory.records().stream::<HostRecord>(filter);
    while let Some(host) = hosts.try_next().await? {
        files.push(host_log_file(cluster, &host.record)?);
    }
    let store = inventory.files().clone();
    // Look for the first file before the response begins, because a cluster without logs is an error.
    let mut files = files.into_iter();
    let first = loop {
        let Some(next) = files.next() else {
            return Err(Error::conflict(format!("Logs of cluster {} are not available yet", cluster.id)));
        };
        if let Some(file) = store.get(&next.path).await? {
            break archive_entry(&next.name, file);
        }
    };
    let rest = stream::iter(files).then(move |file| open(store.clone(), file)).try_flatten();
    let end = stream::once(async { Ok(Bytes::from_static(&tar::END)) });
    let content = first.chain(rest).chain(end).boxed();
    let name = format!("{}_{}.tar", safe_file_name(&cluster.spec.name), cluster.id);
    Ok(LogsDownload { name, len: None, content })
}

/// Returns the archive entry of a log file, or an empty stream if the file does not exist.
async fn open(store: FileStore, file: LogFile) -> Result<Content, FileError> {
    Ok(store
        .get(&file.path)
        .await?
        .map_or_else(|| stream::empty().boxed(), |opened| archive_entry(&file.name, opened)))
}

fn archive_entry(name: &str, file: OpenFile) -> Content {
    let header = tar_header(name, &file.info);
    let padding = Bytes::from_static(tar::padding(file.info.len));
    stream::once(async { header }).chain(file.content).chain(stream::once(async { Ok(padding) })).boxed()
}

/// Returns the tar header of a log file. A time before 1970 becomes 0.
fn tar_header(name: &str, info: &FileInfo) -> Result<Bytes, FileError> {
    let written_at = u64::try_from(info.written_at.timestamp()).unwrap_or(0);
    Ok(Bytes::copy_from_slice(&tar::header(name, info.len, written_at)?))
}

fn controller_log_file(cluster: &ClusterRecord) -> Result<LogFile, Error> {
    Ok(LogFile { path: path_of_controller(cluster.id)?, name: "controller.tar.gz".to_owned() })
}

fn host_log_file(cluster: &ClusterRecord, host: &HostRecord) -> Result<LogFile, Error> {
    let path = path_of_host(cluster.id, host.infra_env_id, host.id)?;
    Ok(LogFile { path, name: format!("{}_{}.tar.gz", safe_file_name(&host.name()), host.id) })
}

/// Returns a short form of a name that is valid in archives and HTTP headers.
fn safe_file_name(name: &str) -> String {
    const MAX_CHARS: usize = 50;
    let replace =
        |char: char| if char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_') { char } else { '_' };
    name.chars().take(MAX_CHARS).map(replace).collect()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;

    #[test]
    fn time_of_an_archived_file_is_never_before_1970() {
        let time = |written_at| {
            let path = FilePath::from_names(["a"]).unwrap();
            let header = tar_header("a", &FileInfo { path, len: 1, written_at }).unwrap();
            ::tar::Header::from_byte_slice(&header).mtime().unwrap()
        };
        assert_eq!(time(DateTime::UNIX_EPOCH), 0);
        assert_eq!(time(DateTime::<Utc>::MIN_UTC), 0);
        for seconds in [1_700_000_000, DateTime::<Utc>::MAX_UTC.timestamp()] {
            assert_eq!(time(DateTime::from_timestamp(seconds, 0).unwrap()), seconds.unsigned_abs());
        }
    }

    #[test]
    fn safe_file_name_replaces_special_characters() {
        assert_eq!(safe_file_name("node-1.example.com"), "node-1.example.com");
        assert_eq!(safe_file_name("../a\"b\r\nä"), ".._a_b___");
        assert_eq!(safe_file_name(&"x".repeat(100)).len(), 50);
    }
}
