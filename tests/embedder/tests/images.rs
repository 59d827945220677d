//! Images from typed values and from manifests: on disk, as ranges, as iPXE files.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use discovery::manifests::{IdSource, Manifests};
use discovery::{Draft, FindingKind, Form, Image, ImageSet, ServiceContext};
use embedder::{image_server, site};
use fixtures::{Architecture, Era, Recipe};
use ignition::discovery::HttpUrl;
use ignition::discovery::ipxe::BootFiles;
use ignition::network::KeyfileCache;
use isogen::write::FileAccess;
use isogen::{BaseImage, Source};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

type Outcome = Result<(), Box<dyn Error>>;

fn base() -> Result<Arc<BaseImage>, Box<dyn Error>> {
    let bytes = Recipe::new(Architecture::X86_64, Era::E2024_12).with_program().build();
    Ok(Arc::new(BaseImage::from_source(Source::from_bytes("base.iso", bytes))?))
}

fn images(config_override: Option<&str>) -> Result<ImageSet, Box<dyn Error>> {
    let cache = KeyfileCache::default();
    let inputs = site::inputs(config_override)?.check(&cache)?;
    assert_eq!(inputs.warnings.to_string(), "");
    Ok(ImageSet::new(base()?, inputs.value, &cache)?)
}

fn minimal() -> Result<Form, Box<dyn Error>> {
    Ok(Form::Minimal { rootfs_url: "http://192.0.2.1/rootfs.img".parse::<HttpUrl>()? })
}

/// Returns the config in an ISO on disk.
fn config_of(iso: &Path) -> Result<String, Box<dyn Error>> {
    let archive = BaseImage::open(iso)?.archive()?;
    Ok(String::from_utf8(archive.get("config.ign").ok_or("no config")?.to_vec())?)
}

#[test]
fn both_isos_are_written_from_typed_values() -> Outcome {
    let directory = tempfile::tempdir()?;
    let images = images(None)?;
    let mut lengths = Vec::new();
    for (name, form) in [("full.iso", Form::Full), ("minimal.iso", minimal()?)] {
        let path = directory.path().join(name);
        let plan = images.plan(&form)?;
        plan.write_file(&path)?;
        assert_eq!(path.metadata()?.len(), plan.len());
        let config = config_of(&path)?;
        assert!(config.contains(site::ID), "{name}");
        assert_eq!(config.contains("/etc/assisted/network/host1/"), form == Form::Full, "{name}");
        lengths.push(plan.len());
    }
    assert!(lengths[1] < lengths[0], "{lengths:?}");
    let one = images.of_machine("52:54:00:00:00:02".parse()?, &KeyfileCache::default())?.ok_or("no host")?;
    let path = directory.path().join("node-1.iso");
    one.plan(&Form::Full)?.write_file(&path)?;
    assert!(!config_of(&path)?.contains("/etc/assisted/network/host1/"));
    Ok(())
}

#[test]
fn files_of_a_network_boot_are_readable_by_a_tftp_server() -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir()?;
    let images = images(None)?;
    let base = images.base();
    let files = [
        ("vmlinuz", base.kernel()?),
        ("initrd.img", images.plan(&Form::Initrd)?),
        ("rootfs.img", base.rootfs()?),
    ];
    for (name, plan) in files {
        let path = directory.path().join(name);
        plan.write_file_with(&path, FileAccess::Shared)?;
        assert_eq!(path.metadata()?.permissions().mode() & 0o044, 0o044, "{name}");
    }
    let [kernel, initrd] = ["vmlinuz", "initrd.img"].map(str::to_owned);
    let rootfs = "http://192.0.2.1/rootfs.img".to_owned();
    let script = BootFiles { kernel, initrd, rootfs }.script(images.inputs().kernel_arguments())?;
    assert!(script.starts_with("#!ipxe\n") && script.contains("coreos.live.rootfs_url="), "{script}");
    Ok(())
}

#[tokio::test]
async fn image_is_a_stream_and_is_served_in_ranges() -> Outcome {
    let plan = images(None)?.plan(&Form::Full)?;
    let bytes = plan.read_all(1 << 30)?;
    let image = Image::from(plan.clone());
    assert_eq!(image.read(32_768..32_774).await?, bytes[32_768..32_774]);
    let mut reader = image.reader();
    reader.seek(std::io::SeekFrom::End(-100)).await?;
    let mut end = Vec::new();
    reader.read_to_end(&mut end).await?;
    assert_eq!(end, bytes[bytes.len() - 100..]);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/image.iso", listener.local_addr()?);
    let router = image_server::router(plan)?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    // Any HTTP client works. This one is already a dependency of the API client.
    let client = assisted::client::reqwest::Client::new();
    let part = client.get(&url).header("range", "bytes=32768-32773,-100").send().await?;
    assert_eq!(part.status(), 206);
    assert!(part.headers()["content-type"].to_str()?.starts_with("multipart/byteranges"));
    let etag = part.headers()["etag"].clone();
    let part =
        client.get(&url).header("range", "bytes=32768-").header("if-range", etag.clone()).send().await?;
    assert_eq!(part.status(), 206);
    assert!(part.bytes().await? == bytes[32_768..]);
    let whole = client.get(&url).header("range", "bytes=5-9").header("if-range", "\"other\"").send().await?;
    assert_eq!(whole.status(), 200);
    assert!(whole.bytes().await? == bytes);
    let revalidation = client.get(&url).header("if-none-match", etag).send().await?;
    assert_eq!((revalidation.status().as_u16(), revalidation.bytes().await?.len()), (304, 0));
    let outside = client.get(&url).header("range", "bytes=99999999999-").send().await?;
    assert_eq!(outside.status(), 416);
    Ok(())
}

#[test]
fn override_is_merged_or_refused_with_its_findings() -> Outcome {
    let file = r#"{"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/etc/motd", "contents": {"source": "data:,hi"}}]}}"#;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("full.iso");
    images(Some(file))?.plan(&Form::Full)?.write_file(&path)?;
    assert!(config_of(&path)?.contains("/etc/motd"));
    let wrong =
        "{\"ignition\": {\"version\": \"3.1.0\"},\n\"storage\": {\"files\": [{\"path\": \"motd\"}, {}]}}";
    let report = site::inputs(Some(wrong))?.check(&KeyfileCache::default()).err().ok_or("accepted")?;
    let places: Vec<_> = report.as_slice().iter().map(|it| (it.kind, it.place.line)).collect();
    assert_eq!(places, [(FindingKind::Override, Some(2)); 2], "{report}");
    // OpenShift 4.12 reads specs up to 3.3.
    let new = r#"{"ignition": {"version": "3.4.0"}}"#;
    let inputs = discovery::Inputs::builder(site::service()?, site::infra_env(Some(new))?, "4.12".parse()?);
    let report = inputs.check(&KeyfileCache::default()).err().ok_or("accepted")?;
    assert!(report.to_string().contains("the system reads only up to 3.3"), "{report}");
    Ok(())
}

#[test]
fn manifests_are_objects_of_an_api() -> Outcome {
    let mut manifests = Manifests::default().with_ids_from(IdSource::Uid);
    let metadata = json!({"namespace": "site", "name": "rack-1", "uid": site::ID});
    let spec = json!({"pullSecretRef": {"name": "pull-secret"}, "osImageVersion": "4.18"});
    manifests.add_object("", json!({"kind": "InfraEnv", "metadata": metadata, "spec": spec}))?;
    let secret = json!({".dockerconfigjson": site::PULL_SECRET});
    let metadata = json!({"namespace": "site", "name": "pull-secret"});
    manifests.add_object("", json!({"kind": "Secret", "metadata": metadata, "stringData": secret}))?;
    let unknown = manifests.draft(Some("other"), Draft::default()).err().ok_or("found")?;
    assert_eq!(unknown.as_slice()[0].kind, FindingKind::UnknownInfraEnv);
    let (draft, findings) = manifests.draft(Some("site/rack-1"), Draft::default())?;
    assert_eq!(findings.to_string(), "");
    let context = ServiceContext { service: site::service()?, version: None };
    let cache = KeyfileCache::default();
    let inputs = draft.inputs(&context, &cache)?.value;
    assert_eq!(inputs.infra_env().id.as_str(), site::ID);
    assert!(!ImageSet::new(base()?, inputs, &cache)?.plan(&Form::Full)?.is_empty());
    // Errors about values outside of files name their field.
    let draft = Draft { ssh_keys: Some("zz".into()), ..draft };
    let report = draft.inputs(&context, &cache).err().ok_or("accepted")?;
    assert!(report.to_string().starts_with("SSH keys: error: "), "{report}");
    Ok(())
}
