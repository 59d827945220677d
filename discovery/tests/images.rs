//! Tests that discovery images can be created from every base image with an embed area, and read back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use discovery::{BaseContext, Inputs, PackedConfig};
use fixtures::{Architecture, Recipe};
use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{
    DiscoveryImage, HttpUrl, ImageReference, InfraEnvId, InfraEnvSettings, InventoryService, PullSecret,
};
use ignition::network::{HostNetwork, KeyfileCache, MacInterface};
use isogen::initrd::ArchiveLimits;
use isogen::{Archive, BaseImage, Encoding, PackedArchive, Plan, Source};

const ROOTFS: &str = "http://192.0.2.1/boot-artifacts/rootfs?arch=x86_64&version=418.94.1";

fn rootfs_url() -> HttpUrl {
    HttpUrl::parse("rootfs_url", ROOTFS).unwrap()
}

fn discovery_inputs(hosts: usize) -> Inputs {
    let host = |number: usize| {
        HostNetwork::from_unchecked(
            format!("interfaces: [{{name: eth0, type: ethernet, state: up, mtu: {}}}]\n", 1400 + number),
            vec![MacInterface {
                logical_nic_name: "eth0".to_owned(),
                mac_address: format!("52:54:00:00:00:{number:02x}"),
            }],
        )
    };
    let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666").unwrap();
    let secret = PullSecret::parse(r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#).unwrap();
    let service = InventoryService::new(
        HttpUrl::parse("service", "http://192.0.2.1:8090").unwrap(),
        ImageReference::parse("agent", "quay.io/example/agent:v1").unwrap(),
    );
    let arguments = KernelArguments::parse(r#"[{"operation": "append", "value": "quiet"}]"#).unwrap();
    Inputs::builder(service, InfraEnvSettings::new(id, secret), "4.18".parse().unwrap())
        .hosts((0..hosts).map(host))
        .kernel_arguments(arguments)
        .check(&KeyfileCache::default())
        .unwrap()
        .value
}

fn base_images() -> impl Iterator<Item = (Recipe, BaseImage)> {
    Recipe::all().filter_map(|recipe| {
        let image = BaseImage::from_source(Source::from_bytes(recipe.file_name(), recipe.build())).ok()?;
        (image.kargs().is_some() && image.ignition_area().is_some()).then_some((recipe, image))
    })
}

fn open_plan(plan: &Plan) -> BaseImage {
    BaseImage::from_source(Source::new("product".into(), plan.len(), plan.clone())).unwrap()
}

fn member_bytes(archive: &Archive, name: &str) -> Vec<u8> {
    archive.get(name).expect(name).to_vec()
}

#[test]
fn full_image_contains_config_networks_and_kernel_arguments() {
    let (inputs, cache) = (discovery_inputs(2), KeyfileCache::new(1 << 20));
    let networks = inputs.networks(&cache).unwrap();
    let config = inputs.config(DiscoveryImage::Full, &networks).unwrap().config.to_string();
    let full = PackedConfig::new(&inputs.rendered(DiscoveryImage::Full, &networks).unwrap()).unwrap();
    let mut image_count = 0;
    for (recipe, base) in base_images() {
        let plan = full.full_iso(BaseContext { base: &base, nmstatectl: None }).unwrap();
        let image = open_plan(&plan);
        assert_eq!(member_bytes(&image.archive().unwrap(), "config.ign"), config.as_bytes(), "{recipe:?}");
        assert!(image.kargs().unwrap().current().unwrap().ends_with(" quiet"), "{recipe:?}");
        assert_eq!(
            plan.identity().unwrap(),
            full.full_iso(BaseContext { base: &base, nmstatectl: None }).unwrap().identity().unwrap()
        );
        image_count += 1;
    }
    assert!(image_count >= 10, "{image_count} images were made");
    assert!(config.contains("/etc/assisted/network/host1/"));
}

#[test]
fn minimal_image_has_networks_in_separate_files() {
    let (inputs, cache) = (discovery_inputs(2), KeyfileCache::new(1 << 20));
    let networks = inputs.networks(&cache).unwrap();
    let minimal = PackedConfig::new(&inputs.rendered(DiscoveryImage::Minimal, &networks).unwrap()).unwrap();
    let program =
        PackedArchive::from_file("/usr/bin/nmstatectl", 0o100_755, b"program", Encoding::Gzip).unwrap();
    let mut image_count = 0;
    for (recipe, base) in base_images().filter(|(recipe, _)| recipe.architecture() == Architecture::X86_64) {
        let context = BaseContext { base: &base, nmstatectl: Some(&program) };
        let plan = minimal.minimal_iso(context, &rootfs_url()).unwrap();
        let image = open_plan(&plan);
        assert!(image.file("images/pxeboot/rootfs.img").is_err(), "{recipe:?}");
        let network = image.file("images/assisted_installer_custom.img").unwrap().read_all(1 << 20).unwrap();
        let network = Archive::read(network.as_slice(), ArchiveLimits::IGNITION_AREA).unwrap();
        assert!(network.get("/etc/assisted/network/host1/mac_interface.ini").is_some(), "{recipe:?}");
        assert!(image.file("images/nmstate.img").is_ok(), "{recipe:?}");
        let arguments = image.kargs().unwrap().current().unwrap().to_owned();
        assert!(arguments.contains("coreos.live.rootfs_url="), "{recipe:?}: {arguments}");
        assert!(!plan.is_empty() && plan.len() < base.source().len(), "{recipe:?}");
        image_count += 1;
    }
    assert!(image_count >= 3, "{image_count} images were made");
}

#[test]
fn minimal_image_without_networks_has_no_extra_files() {
    let (inputs, cache) = (discovery_inputs(0), KeyfileCache::new(1 << 20));
    let networks = inputs.networks(&cache).unwrap();
    let minimal = PackedConfig::new(&inputs.rendered(DiscoveryImage::Minimal, &networks).unwrap()).unwrap();
    assert!(inputs.initrd(&networks).unwrap().is_empty());
    let (_, base) = base_images().find(|(recipe, _)| recipe.architecture() == Architecture::X86_64).unwrap();
    let plan = minimal.minimal_iso(BaseContext { base: &base, nmstatectl: None }, &rootfs_url()).unwrap();
    assert!(open_plan(&plan).file("images/assisted_installer_custom.img").is_err());
}

#[test]
fn network_boot_initrd_is_followed_by_all_archives() {
    let (inputs, cache) = (discovery_inputs(1), KeyfileCache::new(1 << 20));
    let networks = inputs.networks(&cache).unwrap();
    let minimal = PackedConfig::new(&inputs.rendered(DiscoveryImage::Minimal, &networks).unwrap()).unwrap();
    let program =
        PackedArchive::from_file("/usr/bin/nmstatectl", 0o100_755, b"program", Encoding::Gzip).unwrap();
    for (recipe, base) in base_images() {
        let context = BaseContext { base: &base, nmstatectl: Some(&program) };
        let plan = minimal.network_initrd(context).unwrap();
        let base_len = base.file("images/pxeboot/initrd.img").unwrap().len();
        let bytes = plan.read_all(64 << 20).unwrap();
        let added = Archive::read(&bytes[usize::try_from(base_len).unwrap()..], ArchiveLimits::IGNITION_AREA)
            .unwrap();
        assert_eq!(member_bytes(&added, "/usr/bin/nmstatectl"), b"program", "{recipe:?}");
        assert!(added.get("config.ign").is_some() && added.len() > 4, "{recipe:?}");
    }
}
