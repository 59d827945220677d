//! Uploads, downloads and deletion of the logs of hosts and cluster controllers.

mod deletion;
mod download;
mod path;
mod upload;

pub(crate) use deletion::{delete_files_of_cluster, delete_logs_of_host};
pub(crate) use download::{LogsDownload, RequestedLogs};
pub(crate) use path::folder_of_cluster;
pub(crate) use upload::{LogsSender, LogsUpload, MAX_LOGS};
