//! A service that behaves like the Assisted Service, which is written in Go: it sends the time of the last change but
//! no entity tags, and ignores preconditions.

use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::peer_service::{PeerService, ServiceCall, ServiceReply};

/// The service's record of every infra-env.
#[derive(Clone, Debug)]
pub(crate) struct GoRecord {
    pub(crate) config: String,
    /// The archive for early boot; `None` if the service has none.
    pub(crate) early_boot: Option<Vec<u8>>,
    pub(crate) kernel_arguments: Option<String>,
    pub(crate) updated_at: DateTime<Utc>,
    /// Whether configs contain a token, which has a new signature in each response.
    pub(crate) signs: bool,
    /// Whether responses have `Date` and `Last-Modified`.
    pub(crate) tells_times: bool,
}

impl GoRecord {
    /// Returns a record whose last change was long ago.
    pub(crate) fn long_unchanged() -> Self {
        Self {
            config: json!({"ignition": {"version": "3.1.0"}}).to_string(),
            early_boot: None,
            kernel_arguments: Some(json!([{"operation": "append", "value": "quiet"}]).to_string()),
            updated_at: "2024-05-06T07:08:09Z".parse().unwrap(),
            signs: false,
            tells_times: true,
        }
    }
}

pub(crate) struct GoService {
    pub(crate) peer: PeerService,
    pub(crate) record: Arc<Mutex<GoRecord>>,
}

impl GoService {
    pub(crate) async fn start() -> Self {
        let record = Arc::new(Mutex::new(GoRecord::long_unchanged()));
        let (shared, count) = (Arc::clone(&record), Mutex::new(0_u32));
        let peer = PeerService::new(move |call| answer_call(&shared.lock().unwrap(), call, &count)).await;
        Self { peer, record }
    }

    /// Changes the record. The time of the change is long past, unless `change` sets another one.
    pub(crate) fn change(&self, change: impl FnOnce(&mut GoRecord)) {
        let mut record = self.record.lock().unwrap();
        record.updated_at += chrono::TimeDelta::seconds(100);
        change(&mut record);
    }
}

pub(crate) fn http_date(time: DateTime<Utc>) -> String {
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn answer_call(record: &GoRecord, call: &ServiceCall, count: &Mutex<u32>) -> ServiceReply {
    let with_date = |reply: ServiceReply| match record.tells_times {
        true => reply.header("Date", http_date(Utc::now())),
        false => reply,
    };
    let path = call.operation().split('?').next().unwrap();
    let reply = match path.split_once('/').map(|(_, path)| path) {
        Some("downloads/files") => {
            let mut config = record.config.clone();
            if record.signs {
                let mut count = count.lock().unwrap();
                *count += 1;
                let token = format!("eyJhbGciOiJFUzI1NiJ9.eyJhIjoxfQ.{count:A>86}");
                config =
                    json!({"ignition": {"version": "3.1.0"}, "token": token, "config": config}).to_string();
            }
            let reply = ServiceReply::new(200, config).header("Content-Type", "application/octet-stream");
            match record.tells_times {
                true => reply.header("Last-Modified", http_date(record.updated_at)),
                false => reply,
            }
        }
        Some("downloads/minimal-initrd") => match &record.early_boot {
            Some(archive) => ServiceReply::new(200, archive.clone()),
            None => ServiceReply::new(204, ""),
        },
        None => ServiceReply::new(
            200,
            json!({"id": path, "kernel_arguments": record.kernel_arguments}).to_string(),
        ),
        Some(_) => ServiceReply::new(404, json!({"code": 404, "message": "no such path"}).to_string()),
    };
    with_date(reply)
}
