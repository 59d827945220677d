//! Tests the iPXE scripts of infra-envs.

use serde_json::json;

use super::files::get_file;
use super::{create_infra_env, infra_env_path};
use crate::service::{IMAGE_SERVICE, on_each_database, with_status};

#[test]
fn ipxe_script_boots_hosts() {
    on_each_database(async |service| {
        let arguments =
            json!([{"operation": "append", "value": "p1"}, {"operation": "append", "value": "p2"}]);
        let infra_env =
            create_infra_env(service, &json!({"openshift_version": "4.14.9", "kernel_arguments": arguments}))
                .await;
        let id = infra_env["id"].as_str().unwrap();
        let script = get_file(service, &infra_env, "file_name=ipxe-script").await;
        assert_eq!(
            script.text,
            format!(
                "#!ipxe\n\
                 initrd --name initrd {IMAGE_SERVICE}/images/{id}/pxe-initrd?arch=x86_64&version=4.14\n\
                 kernel {IMAGE_SERVICE}/boot-artifacts/kernel?arch=x86_64&version=4.14 initrd=initrd \
                 coreos.live.rootfs_url={IMAGE_SERVICE}/boot-artifacts/rootfs?arch=x86_64&version=4.14 \
                 random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal \
                 console=tty1 console=ttyS1,115200n8 \
                 coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\" p1 p2\nboot\n"
            )
        );
        assert_eq!(
            script.header("content-disposition").unwrap(),
            format!("attachment; filename=\"{id}-ipxe-script\"")
        );
        let redirect =
            get_file(service, &infra_env, "file_name=ipxe-script&ipxe_script_type=boot-order-control")
                .await
                .text;
        let place = format!(
            "/api/assisted-install/v2/infra-envs/{id}/downloads/files?file_name=ipxe-script&mac=${{net0/mac}}\n"
        );
        assert!(
            redirect.starts_with("#!ipxe\nchain http://127.0.0.1:") && redirect.ends_with(&place),
            "{redirect}"
        );
        let script_with_mac = get_file(
            service,
            &infra_env,
            "file_name=ipxe-script&ipxe_script_type=boot-order-control&mac=52:54:00:00:00:01",
        )
        .await;
        assert_eq!(script_with_mac.text, script.text);
    });
}

#[test]
fn installed_machine_does_not_boot_the_discovery_image_again() {
    on_each_database(async |service| {
        use kindling::inventory::host::{HostRecord, HostStage, HostStatus};
        use kindling::inventory::store::{Change, Stored};

        let infra_env = create_infra_env(service, &json!({"openshift_version": "4.18"})).await;
        let host = json!({"host_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
        service.post(&format!("{}/hosts", infra_env_path(&infra_env)), &host).await.json_with_status(201);
        let inventory =
            json!({"interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:0A"}]}).to_string();
        let reply =
            json!({"step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": inventory});
        let steps =
            format!("{}/hosts/7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11/instructions", infra_env_path(&infra_env));
        assert_eq!(service.post(&steps, &reply).await.status, 204);
        for (status, stage, boots) in [
            (HostStatus::KnownUnbound, None, true),
            (HostStatus::InstallingInProgress, Some(HostStage::Installing), true),
            (HostStatus::InstallingInProgress, Some(HostStage::Rebooting), false),
            (HostStatus::Installed, Some(HostStage::Done), false),
        ] {
            let records = service.inventory.records();
            let parent = Some(infra_env["id"].as_str().unwrap().parse().unwrap());
            let id = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
            let change = async |_| {
                let stored: Stored<HostRecord> = records.find(parent, id).await?.unwrap();
                let mut record = with_status(&stored.record, status);
                record.progress.stage = stage;
                let mut change = Change::new();
                change.replace(&record, stored.generation)?;
                Ok((change, ()))
            };
            records.change(change).await.unwrap();
            for mac in ["52:54:00:00:00:0a", "52-54-00-00-00-0A"] {
                let answer = get_file(service, &infra_env, &format!("file_name=ipxe-script&mac={mac}")).await;
                assert_eq!(
                    answer.status,
                    if boots { 200 } else { 404 },
                    "{status:?} {stage:?} {mac}: {}",
                    answer.text
                );
            }
            let other = get_file(service, &infra_env, "file_name=ipxe-script&mac=52:54:00:00:00:0b").await;
            assert_eq!(other.status, 200);
        }
    });
}
