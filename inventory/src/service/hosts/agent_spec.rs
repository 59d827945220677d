//! Applies the `Agent` resource of an operator to a host. The operator repeats the call until the host and the resource
//! match.

use futures_util::future::BoxFuture;

use crate::Inventory;
use crate::error::Error;
use crate::host::agent_spec::apply_spec;
use crate::host::draft::{ASSESSED, HostDraft};
use crate::host::{HostRecord, HostSpec};
use crate::id::HostKey;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::service::infra_envs::Ensured;
use crate::store::ReportKinds;

impl Inventory {
    /// Changes a host in one commit, so that its settings match its `Agent` resource. If nothing differs, nothing is
    /// written.
    ///
    /// Approval, installer arguments and the Ignition override are applied in every status. The other settings are
    /// applied only before the installation starts. After that, differences are left unchanged without an error.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if a value is invalid. In both cases nothing is written. The
    /// error is a [`Conflict`](crate::ErrorKind::Conflict) if the installation disk is not one of the host's valid
    /// disks.
    pub fn update_host_from_agent(
        &self,
        key: HostKey,
        spec: HostSpec,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<Ensured<HostRecord>, Error>> {
        Box::pin(async move {
            let context = self.host_context(key).await?;
            let edit =
                |draft: &mut HostDraft, journal: &mut Journal| apply_spec(draft, &spec, &context, journal);
            match key.ensure_edited(self, request, ASSESSED, edit).await?.0 {
                Ensured::Updated(host) => Ok(Ensured::Updated(self.assessed_host(host).await)),
                unchanged => Ok(unchanged),
            }
        })
    }

    /// Approves a host for installation, or withdraws the approval. If nothing differs, nothing is written.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub fn approve_host(
        &self,
        key: HostKey,
        approved: bool,
    ) -> BoxFuture<'_, Result<Ensured<HostRecord>, Error>> {
        Box::pin(async move {
            let edit = |draft: &mut HostDraft, _: &mut Journal| {
                draft.record.choices.approved = approved;
                Ok(())
            };
            Ok(key.ensure_edited(self, None, ReportKinds::NONE, edit).await?.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assisted::Secret;
    use assisted::host::{ChosenRole, Header, HostRole, HostStatus, HostUpdateParams, NodeLabel};
    use assisted::step::StepType;

    use super::*;
    use crate::error::ErrorKind;
    use crate::infra_env::ResourceOwner;
    use crate::service::hosts::registration::Registration;
    use crate::service::test_inventory::{INVENTORY_REPORT, TestInventory, register_host, reply};

    fn full_spec() -> HostSpec {
        HostSpec {
            owner: None,
            approved: true,
            hostname: Some("node-7".to_owned()),
            role: Some("master".to_owned()),
            machine_config_pool: Some("infra".to_owned()),
            installation_disk: Some("/dev/sdb".to_owned()),
            installer_args: vec!["-n".to_owned()],
            ignition_config_override: r#"{"ignition": {"version": "3.2.0"}}"#.to_owned(),
            ignition_endpoint_token: Secret::new("token"),
            ignition_endpoint_headers: vec![Header { key: "X-A".to_owned(), value: Secret::new("b") }],
            node_labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        }
    }

    async fn host_with_report(inventory: &Inventory) -> HostKey {
        let key = register_host(inventory).await;
        reply(inventory, key, StepType::Inventory, INVENTORY_REPORT).await;
        key
    }

    #[tokio::test]
    async fn host_gets_all_choices_in_one_change_and_keeps_them() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = host_with_report(inventory).await;
        let generation = async || key.find(inventory.records()).await.unwrap().generation;
        let before = generation().await;
        let updated = inventory.update_host_from_agent(key, full_spec(), None).await.unwrap();
        let Ensured::Updated(host) = updated else { panic!("{updated:?}") };
        assert_eq!(generation().await, before + 1);
        assert!(host.choices.approved);
        assert_eq!((host.name().as_str(), host.role), ("node-7", HostRole::Master));
        assert_eq!(host.choices.machine_config_pool_name, "infra");
        assert_eq!(host.choices.installation_disk.as_ref().unwrap().id, "disk-b");
        assert_eq!(host.choices.installer_args, r#"["-n"]"#);
        for disk in ["disk-b", "/dev/disk/by-path/b", "/dev/sdb"] {
            let spec = HostSpec { installation_disk: Some(disk.to_owned()), ..full_spec() };
            let same = inventory.update_host_from_agent(key, spec, None).await.unwrap();
            assert_eq!(same, Ensured::Unchanged(host.clone()), "{disk}");
        }
        assert_eq!(generation().await, before + 1);
    }

    #[tokio::test]
    async fn absent_values_are_kept_or_removed() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = host_with_report(inventory).await;
        inventory.update_host_from_agent(key, full_spec(), None).await.unwrap();
        let ensured = inventory.update_host_from_agent(key, HostSpec::default(), None).await.unwrap();
        let choices = ensured.into_inner().choices;
        assert_eq!(
            (choices.hostname.as_str(), choices.machine_config_pool_name.as_str()),
            ("node-7", "infra")
        );
        assert_eq!(choices.installation_disk.unwrap().id, "disk-b");
        assert_eq!((choices.installer_args.as_str(), choices.ignition_config_overrides.as_str()), ("[]", ""));
        assert!(
            choices.ignition_endpoint_token.is_empty() && choices.ignition_endpoint_http_headers.is_empty()
        );
        assert!(choices.node_labels.is_empty() && !choices.approved);
        let same = inventory.update_host_from_agent(key, HostSpec::default(), None).await.unwrap();
        assert!(!same.is_changed(), "{same:?}");
    }

    #[tokio::test]
    async fn refused_value_changes_nothing() {
        type Edit = fn(&mut HostSpec);
        let cases: [(Edit, ErrorKind, &str); 6] = [
            (
                |spec| spec.installation_disk = Some("/dev/sdz".to_owned()),
                ErrorKind::Conflict,
                "Requested installation disk is not part of the host's valid disks",
            ),
            (
                |spec| spec.installer_args = vec!["--x".to_owned()],
                ErrorKind::Invalid,
                "found unexpected flag",
            ),
            (
                |spec| spec.ignition_config_override = "{".to_owned(),
                ErrorKind::Invalid,
                "error parsing ignition",
            ),
            (|spec| spec.hostname = Some("-".to_owned()), ErrorKind::Invalid, "Hostname does not pass"),
            (
                |spec| spec.role = Some("king".to_owned()),
                ErrorKind::Invalid,
                "Requested role (king) is invalid for host ",
            ),
            // As in upstream's controller, the override is applied first.
            (
                |spec| {
                    spec.role = Some("king".to_owned());
                    spec.ignition_config_override = "{".to_owned();
                },
                ErrorKind::Invalid,
                "error parsing ignition",
            ),
        ];
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = host_with_report(inventory).await;
        let before = inventory.host(key).await.unwrap();
        for (edit, kind, reason) in cases {
            let mut spec = full_spec();
            edit(&mut spec);
            let error = inventory.update_host_from_agent(key, spec, None).await.unwrap_err();
            assert!(error.kind() == kind && error.reason().starts_with(reason), "{error}");
        }
        assert_eq!(inventory.host(key).await.unwrap(), before);
    }

    #[tokio::test]
    async fn refused_choice_names_the_resource_that_owns_it() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = host_with_report(inventory).await;
        let owner = ResourceOwner::new("Agent", "site", key.host_id.to_string());
        let spec = HostSpec { owner: Some(owner), hostname: Some("first".to_owned()), ..HostSpec::default() };
        inventory.update_host_from_agent(key, spec.clone(), None).await.unwrap();
        let name = HostUpdateParams { host_name: Some("second".to_owned()), ..HostUpdateParams::default() };
        let labels = vec![NodeLabel { key: "a".to_owned(), value: "b".to_owned() }];
        let labels = HostUpdateParams { node_labels: Some(labels), ..HostUpdateParams::default() };
        let rows = [
            ("host_name", inventory.update_host(key, name.clone(), None).await.map(drop)),
            ("node_labels", inventory.update_host(key, labels, None).await.map(drop)),
            ("installer_args", inventory.set_host_installer_args(key, Vec::new(), None).await.map(drop)),
            ("ignition_config_overrides", inventory.set_host_ignition(key, String::new(), None).await),
        ];
        for (field, result) in rows {
            let error = result.unwrap_err();
            let id = key.host_id;
            let reason =
                format!("{field} of host {id} is defined by Agent site/{id}; change that object instead");
            assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, reason.as_str()));
        }
        let role = HostUpdateParams { host_role: Some(ChosenRole::Worker), ..HostUpdateParams::default() };
        let host = inventory.update_host(key, role, None).await.unwrap();
        assert_eq!((host.role, host.choices.hostname.as_str()), (HostRole::Worker, "first"));
        // Without a name in the resource, clients can set the name again.
        inventory.update_host_from_agent(key, HostSpec { hostname: None, ..spec }, None).await.unwrap();
        assert_eq!(inventory.update_host(key, name, None).await.unwrap().choices.hostname, "second");
    }

    #[tokio::test]
    async fn installing_host_gets_only_choices_valid_in_every_status() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = host_with_report(inventory).await;
        let install = |draft: &mut HostDraft, _: &mut Journal| {
            let mut document = serde_json::to_value(&draft.record).unwrap();
            document["status"] = HostStatus::Installing.as_str().into();
            draft.record = serde_json::from_value(document).unwrap();
            Ok(())
        };
        key.ensure_edited(inventory, None, ASSESSED, install).await.unwrap();
        let before = inventory.host(key).await.unwrap().choices;
        let spec = HostSpec { installation_disk: Some("/dev/sdz".to_owned()), ..full_spec() };
        let after = inventory.update_host_from_agent(key, spec, None).await.unwrap().into_inner().choices;
        assert_eq!((after.installer_args.as_str(), after.approved), (r#"["-n"]"#, true));
        assert_eq!(after.ignition_config_overrides, full_spec().ignition_config_override);
        assert_eq!((after.hostname, after.installation_disk), (before.hostname, before.installation_disk));
        assert_eq!((after.node_labels, after.machine_config_pool_name), Default::default());
    }

    #[tokio::test]
    async fn approval_is_written_once_and_survives_a_new_registration() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = register_host(inventory).await;
        assert!(!inventory.host(key).await.unwrap().choices.approved);
        assert!(inventory.approve_host(key, true).await.unwrap().is_changed());
        assert!(!inventory.approve_host(key, true).await.unwrap().is_changed());
        let registration = Registration { key, agent_version: String::new(), request: None };
        let host = inventory.register_host(&registration).await.unwrap();
        assert!(host.choices.approved);
        assert!(inventory.approve_host(key, false).await.unwrap().is_changed());
    }
}
