//! Logs go out.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use super::{path_of_controller, path_of_host};
use crate::api_error::ApiError;
use crate::discovery::tar;
use crate::inventory::Inventory;
use crate::inventory::cluster::ClusterRecord;
use crate::inventory::files::{FileError, FilePath, FileStore, OpenFile};
use crate::inventory::host::{self, HostRecord};
use crate::inventory::id::{ClusterId, HostId};
use crate::inventory::request::Query;
use crate::inventory::store::{Filter, Kind};

/// Which logs somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Those of a host.
    Host(HostId),
    /// Those of the cluster's controller.
    Controller,
    /// All that there are.
    All,
}

#[derive(Clone, Copy, Debug)]
enum LogsType {
    Host,
    Controller,
    All,
}

impl Wanted {
    /// What a query says.
    pub(super) fn read(query: &Query, host: Option<HostId>) -> Result<Self, ApiError> {
        const KINDS: [(&str, LogsType); 3] =
            [("host", LogsType::Host), ("controller", LogsType::Controller), ("all", LogsType::All)];
        match (query.choice("logs_type", &KINDS)?, host) {
            (Some(LogsType::Controller), _) => Ok(Self::Controller),
            (None | Some(LogsType::Host), Some(host)) => Ok(Self::Host(host)),
            (Some(LogsType::Host), None) => Err(ApiError::bad("host_id is required for the logs of a host")),
            (None, None) | (Some(LogsType::All), _) => Ok(Self::All),
        }
    }
}

/// A file of logs, and how it is called outside.
#[derive(Clone, Debug)]
struct Named {
    path: FilePath,
    name: String,
}

/// The logs that somebody wants: one file as it came, or an archive of all.
pub(super) async fn download(
    inventory: &Inventory,
    cluster: ClusterId,
    wanted: Wanted,
) -> Result<Response, ApiError> {
    let cluster = inventory.stored_cluster(cluster).await?.record;
    let one = match wanted {
        Wanted::All => return all(inventory, &cluster).await,
        Wanted::Controller => controller(&cluster)?,
        Wanted::Host(id) => named(&cluster, &host::find_in_cluster(inventory, cluster.id, id, None).await?)?,
    };
    let file = inventory.files().get(&one.path).await?;
    let file = file.ok_or_else(|| ApiError::conflict(format!("There are no logs {} yet", one.name)))?;
    let len = file.info.len;
    let mut response = attachment(&format!("{}_{}", safe(&cluster.spec.name), one.name), file.content);
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(len));
    Ok(response)
}

async fn all(inventory: &Inventory, cluster: &ClusterRecord) -> Result<Response, ApiError> {
    let mut files = vec![controller(cluster)?];
    let filter = Filter::all(Kind::Host).of_cluster(cluster.id.0);
    let mut hosts = inventory.records().stream::<HostRecord>(filter);
    while let Some(host) = hosts.try_next().await? {
        files.push(named(cluster, &host.record)?);
    }
    let store = inventory.files().clone();
    // Whether there are any is known before the answer begins.
    let mut files = files.into_iter();
    let first = loop {
        let Some(next) = files.next() else {
            return Err(ApiError::conflict(format!("There are no logs of cluster {} yet", cluster.id)));
        };
        if let Some(file) = store.get(&next.path).await? {
            break entry(&next.name, file);
        }
    };
    let rest = stream::iter(files).then(move |file| open(store.clone(), file)).try_flatten();
    let end = stream::once(async { Ok(Bytes::from_static(&tar::END)) });
    let content = first.chain(rest).chain(end).boxed();
    Ok(attachment(&format!("{}_{}.tar", safe(&cluster.spec.name), cluster.id), content))
}

type Content = BoxStream<'static, Result<Bytes, FileError>>;

/// What an archive has of a file; nothing if there is none.
async fn open(store: FileStore, file: Named) -> Result<Content, FileError> {
    Ok(store.get(&file.path).await?.map_or_else(|| stream::empty().boxed(), |found| entry(&file.name, found)))
}

fn entry(name: &str, file: OpenFile) -> Content {
    let written_at = u64::try_from(file.info.written_at.timestamp()).unwrap_or_default();
    let header = Bytes::from(tar::header(name, file.info.len, written_at));
    let padding = Bytes::from(tar::padding(file.info.len));
    stream::once(async { Ok(header) }).chain(file.content).chain(stream::once(async { Ok(padding) })).boxed()
}

fn controller(cluster: &ClusterRecord) -> Result<Named, ApiError> {
    Ok(Named { path: path_of_controller(cluster.id)?, name: "controller.tar.gz".to_owned() })
}

fn named(cluster: &ClusterRecord, host: &HostRecord) -> Result<Named, ApiError> {
    let path = path_of_host(cluster.id, host.infra_env_id, host.id)?;
    Ok(Named { path, name: format!("{}_{}.tar.gz", safe(&host.name()), host.id) })
}

/// A name as it may stand in an archive and in a header, and not too long for either.
fn safe(name: &str) -> String {
    const MOST: usize = 50;
    let replace =
        |char: char| if char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_') { char } else { '_' };
    name.chars().take(MOST).map(replace).collect()
}

fn attachment(name: &str, content: Content) -> Response {
    let mut response = Response::new(Body::from_stream(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // The name has letters, digits and dashes alone.
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn names_are_harmless() {
        assert_eq!(safe("node-1.example.com"), "node-1.example.com");
        assert_eq!(safe("../a\"b\r\nä"), ".._a_b___");
        assert_eq!(safe(&"x".repeat(100)).len(), 50);
    }
}
