//! Writes the seed inputs of the fuzz targets to a folder: pieces of valid images, the hostile images of `fixtures` as
//! patches of valid images, archives of all kinds, and the configs and networks from the tests of `ignition`.
//!
//! ```text
//! seeds FOLDER             the seeds
//! seeds FOLDER changed     the seeds and a fixed number of changed copies
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::erofs::{Compression, Erofs, IndexForm, Packing};
use isogen_fuzz::mutants::{mutants, random_bytes};
use isogen_fuzz::{AT_ANY_OFFSET, BASES, BaseFixture, PLAN_RELAYOUTS, RAW_IMAGE, READ_CONTENTS};

/// Maximum length of an input, in bytes. Mutating longer inputs is not worthwhile.
const MAX_INPUT: usize = 16 << 10;
/// Maximum length of a patch, in bytes.
const MAX_CHANGE: usize = 200;
/// Archives that are longer than an input and take a minute to create.
const LONG_ARCHIVES: [&str; 3] = ["gzip-bomb", "zeros-bomb", "million-members"];

/// The number of mutated inputs for each target. All targets together take about a minute of CPU time.
const CHANGED_INPUTS: [(&str, usize); 8] = [
    ("ignition_config", 20_000),
    ("image_open", 5000),
    ("initrd_read", 20_000),
    ("kargs_area", 5000),
    ("miniso", 2000),
    ("network_input", 5000),
    ("plan_read", 20_000),
    ("rootfs_read", 2000),
];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, with_changed) = match &arguments[..] {
        [folder] => (Path::new(folder), false),
        [folder, changed] if changed == "changed" => (Path::new(folder), true),
        _ => return Err(io::Error::other("usage: seeds FOLDER [changed]")),
    };
    write_images(folder)?;
    write_archives(folder)?;
    write_configs(folder)?;
    write_root_filesystems(folder)?;
    write_networks(folder)?;
    write_descriptions(folder)?;
    for (target, count) in CHANGED_INPUTS.into_iter().filter(|_| with_changed) {
        write_changed(&folder.join(target), count)?;
    }
    Ok(())
}

/// Writes mutated copies of the seeds in a folder.
fn write_changed(folder: &Path, count: usize) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let seeds = paths.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
    mutants(&seeds, count)
        .enumerate()
        .try_for_each(|(number, input)| fs::write(folder.join(format!("changed-{number}")), input))
}

fn write(folder: PathBuf, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(&folder)?;
    if bytes.len() > MAX_INPUT {
        return Ok(());
    }
    fs::write(folder.join(name), bytes)
}

fn write_images(corpus: &Path) -> io::Result<()> {
    let folder = corpus.join("image_open");
    for (number, base) in BASES.iter().enumerate() {
        let first = u8::try_from(number).expect("there are few bases");
        write(folder.clone(), &format!("base-{number}"), &[first | READ_CONTENTS | PLAN_RELAYOUTS])?;
        for (index, region) in base.regions.iter().enumerate() {
            let start = usize::try_from(region.offset).expect("it lies in memory");
            let len = usize::try_from(region.len).expect("it lies in memory").min(4 * MAX_CHANGE);
            let index = u8::try_from(index).expect("there are few regions");
            let chunks = base.bytes[start..start + len].chunks(MAX_CHANGE).enumerate();
            let mut input = vec![first];
            for (chunk, bytes) in chunks {
                let at = u16::try_from(chunk * MAX_CHANGE).expect("it is short");
                input.push(index);
                input.extend(at.to_le_bytes());
                input.push(u8::try_from(bytes.len()).expect("it is short"));
                input.extend_from_slice(bytes);
            }
            write(folder.clone(), &format!("region-{number}-{index}"), &input)?;
        }
    }
    for hostile in fixtures::hostile() {
        let image = hostile.image();
        let input = BASES
            .iter()
            .enumerate()
            .filter_map(|(number, base)| encode_as_patches(number, base, &image))
            .min_by_key(Vec::len);
        if let Some(input) = input {
            write(folder.clone(), &format!("hostile-{}", hostile.name), &input)?;
        }
    }
    // Images without a base. They contain only the start: descriptors, directories and small files.
    let raw =
        BASES.iter().map(|base| [&[RAW_IMAGE][..], &base.bytes[32_768..32_768 + MAX_INPUT - 1]].concat());
    raw.enumerate().try_for_each(|(number, bytes)| write(folder.clone(), &format!("raw-{number}"), &bytes))
}

/// Encodes an image as patches of a base image. Returns `None` if their lengths differ or the patches are too long.
fn encode_as_patches(number: usize, base: &BaseFixture, image: &[u8]) -> Option<Vec<u8>> {
    if base.bytes.len() != image.len() {
        return None;
    }
    let mut input = vec![u8::try_from(number).ok()?];
    let mut at = 0;
    while at < image.len() {
        if base.bytes[at] == image[at] {
            at += 1;
            continue;
        }
        let end = image.len().min(at + MAX_CHANGE);
        input.push(AT_ANY_OFFSET);
        input.extend(u32::try_from(at).ok()?.to_le_bytes());
        input.push(u8::try_from(end - at).ok()?);
        input.extend_from_slice(&image[at..end]);
        at = end;
        if input.len() > MAX_INPUT {
            return None;
        }
    }
    Some(input)
}

fn write_archives(corpus: &Path) -> io::Result<()> {
    let folder = corpus.join("initrd_read");
    for archive in
        fixtures::hostile_archives().iter().filter(|archive| !LONG_ARCHIVES.contains(&archive.name))
    {
        write(folder.clone(), archive.name, &archive.bytes())?;
    }
    for (number, base) in BASES.iter().enumerate() {
        let file = base.mastered.files["images/pxeboot/initrd.img"];
        let start = usize::try_from(file.offset).expect("it lies in memory");
        let len = usize::try_from(file.len).expect("it lies in memory");
        write(folder.clone(), &format!("initrd-{number}"), &base.bytes[start..start + len])?;
    }
    Ok(())
}

/// Writes the parent and child configs of the merge tests, and the configs with findings.
fn write_configs(corpus: &Path) -> io::Result<()> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ignition/tests");
    for folder in ["merge", "validate", "lint"] {
        for file in fs::read_dir(cases.join(folder))? {
            let path = file?.path();
            let cases: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(&path)?)?;
            let file = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            for (number, case) in cases.iter().enumerate() {
                let config = |field: &str, version: &str| {
                    let mut config = case.get(field)?.clone();
                    let spec = case.get(version).or(case.get("spec")).and_then(|spec| spec.as_str());
                    config["ignition"]["version"] = spec.unwrap_or("3.3.0").into();
                    Some(config.to_string())
                };
                let configs =
                    [config("config", "spec"), config("parent", "parentSpec"), config("child", "childSpec")];
                let input: Vec<String> = configs.into_iter().flatten().collect();
                let name = format!("{folder}-{file}-{number}");
                write(corpus.join("ignition_config"), &name, input.join("\0").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Writes small file systems of both types. Skips squashfs if its program is not installed.
fn write_root_filesystems(corpus: &Path) -> io::Result<()> {
    const DEPLOYMENT: &str = "ostree/deploy/rhcos/deploy/1.0/usr/bin";
    let folder = corpus.join("rootfs_read");
    let large: Vec<u8> = (0..30_000_u32).flat_map(|number| (number / 5).to_le_bytes()).collect();
    let paths = ["nmstatectl", "large", "other"].map(|name| format!("{DEPLOYMENT}/{name}"));
    let files = [(&paths[0], &large[..9000]), (&paths[1], &large[..]), (&paths[2], &b"other"[..])];
    for compression in [Compression::MicroLzma, Compression::Deflate, Compression::Zstd] {
        for packing in [Packing::Nothing, Packing::Tails, Packing::Everything] {
            for index in [IndexForm::Full, IndexForm::Compact] {
                let options = Erofs { compression, packing, index, extent_blocks: 2, attribute_words: 0 };
                let image = options.image(files.iter().map(|(path, contents)| (path.as_str(), *contents)));
                write_large(folder.clone(), &format!("erofs-{compression:?}-{packing:?}-{index:?}"), &image)?;
            }
        }
    }
    let tree = corpus.join("rootfs_tree");
    for (path, contents) in files {
        write_large(tree.join(path).parent().expect("it has folders").to_owned(), file_name(path), contents)?;
    }
    for compressor in ["gzip", "xz", "zstd", "lz4"] {
        let image = folder.join(format!("squashfs-{compressor}"));
        let mut command = Command::new("mksquashfs");
        command.args([&tree, &image]).args([
            "-comp",
            compressor,
            "-b",
            "16384",
            "-noappend",
            "-nopad",
            "-quiet",
            "-no-progress",
            // These options make the seeds the same in every run.
            "-all-root",
            "-all-time",
            "0",
            "-mkfs-time",
            "0",
        ]);
        if command.status().is_err() {
            eprintln!("SKIPPED: mksquashfs is not installed, so no squashfs seeds are written");
        }
    }
    fs::remove_dir_all(tree)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Writes a seed of any length to one file.
fn write_large(folder: PathBuf, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// Writes nmstate documents, with and without an interface map, and a list of hosts.
fn write_networks(corpus: &Path) -> io::Result<()> {
    let folder = corpus.join("network_input");
    let documents = [
        include_str!("../network/bond.yaml"),
        include_str!("../network/kinds.yaml"),
        include_str!("../network/syntax.yaml"),
    ];
    for (number, document) in documents.into_iter().enumerate() {
        write(folder.clone(), &format!("document-{number}"), document.as_bytes())?;
        let mapped = format!("{document}\0eth0\052:54:00:aa:bb:01\0eth1\052:54:00:aa:bb:02");
        write(folder.clone(), &format!("mapped-{number}"), mapped.as_bytes())?;
    }
    let host = |document: &&str| {
        serde_json::json!({"network_yaml": document,
            "mac_interface_map": [{"mac_address": "52:54:00:aa:bb:01", "logical_nic_name": "eth0"}]})
    };
    let list: serde_json::Value = documents.iter().map(host).collect();
    write(folder, "list", list.to_string().as_bytes())
}

/// Writes the descriptions of minimal images for `miniso`, and random bytes for the other targets with structured
/// inputs.
fn write_descriptions(corpus: &Path) -> io::Result<()> {
    let minimal = BASES.iter().filter_map(|base| base.mastered.minimal.as_ref());
    for (number, minimal) in minimal.enumerate() {
        // The first byte selects the type of input.
        let input = [&[0; 4], &minimal.description[..]].concat();
        write(corpus.join("miniso"), &format!("description-{number}"), &input)?;
    }
    for target in ["kargs_area", "plan_read"] {
        write(corpus.join(target), "zeros", &[0; 64])?;
        for number in 0..16 {
            let input = random_bytes(number, 64 << (number % 4));
            write(corpus.join(target), &format!("random-{number}"), &input)?;
        }
    }
    Ok(())
}
