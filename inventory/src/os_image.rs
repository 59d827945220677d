//! Base images that clients add while the service runs, in addition to the configured ones.
//!
//! They are stored in the database, so that all replicas use them.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use crate::catalogue::{CpuArchitecture, OsImage};
use crate::error::Error;
use crate::store::{Change, Filter, Kind, ReadSet, Reader as _, Record, Stored};

/// A stored base image that a client added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OsImageRecord(pub(crate) OsImage);

impl Record for OsImageRecord {
    const KIND: Kind = Kind::OsImage;

    fn id(&self) -> Uuid {
        id_of(&self.0.openshift_version, self.0.cpu_architecture)
    }
}

/// The list of added base images. Each addition writes this record, so that two concurrent additions conflict.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OsImageList {}

impl Record for OsImageList {
    const KIND: Kind = Kind::OsImageList;

    fn id(&self) -> Uuid {
        Uuid::nil()
    }
}

impl OsImageList {
    /// Reads the added base images, and records in `change` that another image is added.
    pub(crate) async fn extend(reads: &ReadSet, change: &mut Change) -> Result<Vec<OsImage>, Error> {
        // The list is read before its images, because an image added in the meantime changes the list.
        let list = Self {};
        match reads.find::<Self>(None, list.id()).await? {
            Some(stored) => {
                change.replace(&list, stored.generation)?;
            }
            None => change.insert(&list)?,
        }
        let added: Vec<Stored<OsImageRecord>> = reads.list(Filter::all(Kind::OsImage)).await?;
        Ok(added.into_iter().map(|stored| stored.record.0).collect())
    }
}

/// Returns the id, computed from version and architecture. Each such pair therefore has at most one base image.
pub(crate) fn id_of(version: &str, architecture: CpuArchitecture) -> Uuid {
    let digest = Sha256::digest(format!("os-image/{version}/{architecture}"));
    let mut bytes = [0; 16];
    for (byte, found) in bytes.iter_mut().zip(digest) {
        *byte = found;
    }
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_id_is_the_same_on_all_replicas() {
        let id = id_of("4.14", CpuArchitecture::X86_64);
        assert_eq!(id.to_string(), "4032c5b1-749c-8384-b20a-b1b60f5c2560");
        assert_ne!(id, id_of("4.14", CpuArchitecture::Arm64));
        assert_ne!(id, id_of("4.15", CpuArchitecture::X86_64));
    }
}
