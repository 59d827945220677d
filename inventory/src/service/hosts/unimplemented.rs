//! Operations on hosts that this service does not implement. They refuse the same requests as the Assisted Installer,
//! and report all others as not implemented.

use std::convert::Infallible;

use crate::Inventory;
use crate::error::Error;
use crate::host::{HostRecord, HostStatus};
use crate::id::HostKey;

impl Inventory {
    /// Resets a day-2 host, which was added to an existing cluster.
    ///
    /// # Errors
    ///
    /// Always returns an error.
    pub(crate) async fn reset_host(&self, key: HostKey) -> Result<Infallible, Error> {
        require_day2_host(&self.host(key).await?)?;
        Err(Error::unimplemented("hosts cannot be reset: this service does not install clusters"))
    }

    /// Installs a day-2 host, which is being added to an existing cluster.
    ///
    /// # Errors
    ///
    /// Always returns an error.
    pub(crate) async fn install_host(&self, key: HostKey) -> Result<Infallible, Error> {
        let host = self.host(key).await?;
        if host.cluster_id.is_none() {
            return Err(Error::not_found(format!("Host {} belongs to no cluster", host.id)));
        }
        require_day2_host(&host)?;
        if host.status() != HostStatus::Known {
            let reason = format!("Host {} is in state {}, not {}", host.id, host.status(), HostStatus::Known);
            return Err(Error::conflict(reason));
        }
        Err(Error::unimplemented("hosts cannot be installed: this service does not install clusters"))
    }

    /// Resets an installation validation of a host.
    ///
    /// # Errors
    ///
    /// Always returns an error.
    pub(crate) async fn reset_host_validation(&self, key: HostKey, id: &str) -> Result<Infallible, Error> {
        let host = self.host(key).await?;
        if !matches!(id, "sufficient-installation-disk-speed" | "container-images-available") {
            return Err(Error::invalid(format!("Validation {id:?} cannot be reset")));
        }
        if host.cluster_id.is_none() {
            return Err(Error::conflict(format!("Host {} belongs to no cluster", host.id)));
        }
        Err(Error::unimplemented(
            "validations of an installation cannot be reset: this service does not install clusters",
        ))
    }
}

fn require_day2_host(host: &HostRecord) -> Result<(), Error> {
    if host.cluster_id.is_some() && host.joins() {
        return Ok(());
    }
    Err(Error::conflict(format!("Host {} is not being added to an installed cluster", host.id)))
}
