//! Every verb on every generated image. The generator of the images provides the expected results.

use fixtures::{Architecture, Era};
use serde_json::Value;

use crate::support::{
    CONFIG, FixtureImage, KEYFILE, Scratch, all_fixtures, check_each, different_fixtures, extent_of, fixture,
};
use crate::{file_mode, full_featured_image};

/// Fails if an in-place edit has changed bytes outside of these areas.
#[track_caller]
fn assert_only_changed(image: &FixtureImage, scratch: &Scratch, places: &[fixtures::Extent]) {
    let mut edited = scratch.read("image.iso");
    for place in places {
        let start = usize::try_from(place.offset).unwrap();
        let original = image.extent_bytes(*place);
        edited[start..start + original.len()].copy_from_slice(original);
    }
    assert!(edited == image.bytes, "bytes outside of the areas have changed");
}

#[track_caller]
fn assert_pristine(image: &FixtureImage, scratch: &Scratch) {
    assert!(scratch.read("image.iso") == image.bytes, "the image is not the original");
}

#[test]
fn config_is_embedded_shown_and_removed() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let embedded = scratch.run_kindling("iso ignition embed -i config.ign image.iso");
        let Some(area) = image.truth.ignition else {
            embedded.expect_failure("Unrecognized CoreOS ISO image");
            return assert_pristine(image, &scratch);
        };
        assert!(embedded.expect_success().is_empty());
        assert_only_changed(image, &scratch, &[area]);
        assert_eq!(scratch.run_kindling("iso ignition show image.iso").expect_text(), CONFIG);
        let again = scratch.run_kindling("iso ignition embed -i config.ign image.iso");
        again.expect_failure("already has an embedded Ignition config; use -f to force.");
        let other = scratch.command(["iso", "ignition", "embed", "--force", "image.iso"]).stdin("other");
        other.run().expect_success();
        assert_eq!(scratch.run_kindling("iso ignition show image.iso").expect_text(), "other");
        scratch.run_kindling("iso ignition remove image.iso").expect_success();
        assert_pristine(image, &scratch);
        scratch.run_kindling("iso ignition show image.iso").expect_failure("No embedded Ignition config.");
        scratch.run_kindling("iso ignition remove image.iso").expect_success();
        assert_pristine(image, &scratch);
    });
}

#[test]
fn network_settings_are_embedded_extracted_and_removed() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        scratch.write("more/bond.nmconnection", "[bond]\n");
        let line = "iso network embed -k wired.nmconnection -k more/bond.nmconnection image.iso";
        let embedded = scratch.run_kindling(line);
        if !image.recipe.era().has_features() {
            return embedded.expect_failure("This OS image does not support customizing network settings.");
        }
        let Some(area) = image.truth.ignition else {
            return embedded.expect_failure("Unrecognized CoreOS ISO image");
        };
        embedded.expect_success();
        assert_only_changed(image, &scratch, &[area]);
        let listed = scratch.run_kindling("iso network extract image.iso").expect_text();
        let expected = format!(
            "########## bond.nmconnection ##########\n[bond]\n\n########## wired.nmconnection ##########\n{KEYFILE}"
        );
        assert_eq!(listed, expected);
        let printed = scratch.run_kindling("iso network extract -C out image.iso").expect_text();
        assert_eq!(printed, "out/bond.nmconnection\nout/wired.nmconnection\n");
        assert_eq!(scratch.read("out/wired.nmconnection"), KEYFILE.as_bytes());
        assert_eq!(file_mode(&scratch.files(), "out/wired.nmconnection"), 0o600);
        scratch.run_kindling(line).expect_failure("already has embedded network settings; use -f to force.");
        scratch.run_kindling("iso network embed -f -k wired.nmconnection image.iso").expect_success();
        assert!(!scratch.run_kindling("iso network extract image.iso").expect_text().contains("bond"));
        scratch.run_kindling("iso network remove image.iso").expect_success();
        assert_pristine(image, &scratch);
        scratch.run_kindling("iso network extract image.iso").expect_failure("No embedded network settings.");
    });
}

#[test]
fn kernel_arguments_are_modified_in_every_area() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let output = scratch.run_kindling("iso kargs show image.iso");
        if !image.has_kargs() {
            output.expect_failure("No karg embed areas found; old or corrupted CoreOS ISO image");
            scratch
                .run_kindling("iso kargs modify -a quiet image.iso")
                .expect_failure("No karg embed areas found");
            scratch.run_kindling("iso kargs reset image.iso").expect_failure("No karg embed areas found");
            return assert_pristine(image, &scratch);
        }
        let default = image.recipe.default_kargs();
        assert_eq!(output.expect_text(), format!("{default}\n"));
        let line =
            "iso kargs modify -r ignition.platform.id=metal=qemu -d ignition.firstboot -a quiet image.iso";
        scratch.run_kindling(line).expect_success();
        let expected =
            default.replace("platform.id=metal", "platform.id=qemu").replace(" ignition.firstboot", "");
        let expected = format!("{} quiet", expected.trim());
        assert_eq!(scratch.run_kindling("iso kargs show image.iso").expect_text(), format!("{expected}\n"));
        assert_eq!(
            scratch.run_kindling("iso kargs show --default image.iso").expect_text(),
            format!("{default}\n")
        );
        assert_only_changed(image, &scratch, &image.truth.kargs);
        let (end, pad) =
            if image.recipe.architecture() == Architecture::S390x { (0, 0) } else { (b'\n', b'#') };
        let edited = scratch.read("image.iso");
        for area in &image.truth.kargs {
            let mut text = expected.clone().into_bytes();
            text.push(end);
            text.resize(usize::try_from(area.len).unwrap(), pad);
            assert!(extent_of(&edited, *area) == text, "the area at byte {}", area.offset);
        }
        scratch.run_kindling("iso kargs reset image.iso").expect_success();
        assert_pristine(image, &scratch);
    });
}

#[test]
fn invalid_kernel_arguments_change_nothing() {
    check_each(
        different_fixtures(),
        |image| image.name(),
        |image| {
            let scratch = image.scratch_with_image();
            let room =
                usize::try_from(image.truth.kargs[0].len).unwrap() - image.recipe.default_kargs().len() - 2;
            let modify = |argument: &str| {
                scratch.command(["iso", "kargs", "modify", "-a", argument, "image.iso"]).run()
            };
            let refused = modify(&"x".repeat(room + 1));
            refused.expect_failure("kargs too large for area");
            refused.expect_failure("(see --grow)");
            assert_pristine(image, &scratch);
            modify(&"x".repeat(room)).expect_success();
            scratch.run_kindling("iso kargs reset image.iso").expect_success();
            for bad in ["key", "key=old", "key=old=", "=old=new", "key=a=b=c"] {
                scratch
                    .run_kindling(&format!("iso kargs modify -r {bad} image.iso"))
                    .expect_failure("format should be: KEY=OLD=NEW");
            }
            modify("a\nb").expect_failure("control character");
            assert_pristine(image, &scratch);
        },
    );
}

#[test]
fn reset_reverts_every_change() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        if !image.has_ignition() {
            return scratch
                .run_kindling("iso reset image.iso")
                .expect_failure("Unrecognized CoreOS ISO image");
        }
        scratch.run_kindling("iso ignition embed -i config.ign image.iso").expect_success();
        if image.has_kargs() {
            scratch.run_kindling("iso kargs modify -a quiet image.iso").expect_success();
        }
        scratch.run_kindling("iso reset image.iso").expect_success();
        assert_pristine(image, &scratch);
    });
}

#[test]
fn all_three_output_modes_write_the_same_bytes() {
    check_each(
        different_fixtures(),
        |image| image.name(),
        |image| {
            let scratch = image.scratch_with_image();
            for edit in [
                "iso ignition embed -f -i config.ign",
                "iso kargs modify -a quiet",
                "iso customize -f --live-karg-append x --live-ignition config.ign",
                "iso ignition remove",
                "iso kargs reset",
                "iso reset",
            ] {
                let stream = scratch.run_kindling(&format!("{edit} -o - image.iso")).expect_success();
                assert!(
                    scratch
                        .run_kindling(&format!("{edit} --output out.iso image.iso"))
                        .expect_success()
                        .is_empty()
                );
                assert!(scratch.run_kindling(&format!("{edit} image.iso")).expect_success().is_empty());
                assert!(scratch.read("out.iso") == stream, "{edit}: file and stream differ");
                assert!(scratch.read("image.iso") == stream, "{edit}: edit in place and stream differ");
                assert_eq!(file_mode(&scratch.files(), "out.iso"), 0o600, "{edit}");
                scratch.remove("out.iso");
            }
            assert_pristine(image, &scratch);
        },
    );
}

#[test]
fn customize_reports_what_the_image_will_do() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write("install.yaml", "dest-device: /dev/vda\n");
    scratch.write("hook.sh", "#!/bin/sh\n");
    let customize = |options: &str| scratch.run_kindling(&format!("iso customize -f {options} image.iso"));
    for (options, notice) in [
        ("--live-ignition config.ign", ""),
        ("--pre-install hook.sh --network-keyfile wired.nmconnection", ""),
        ("--installer-config install.yaml", "Boot media will automatically run installer.\n"),
        ("--dest-ignition config.ign", "Boot media will automatically run installer.\n"),
        (
            "--dest-device /dev/sda",
            "Boot media will automatically install to /dev/sda without confirmation.\n",
        ),
    ] {
        let output = customize(options);
        assert_eq!(output.stderr, notice, "{options}");
        assert!(output.expect_success().is_empty());
    }
    let config = scratch.run_kindling("iso ignition show image.iso").expect_text();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["ignition"]["version"], "3.3.0");
    assert_eq!(config["storage"]["files"][0]["path"], "/etc/coreos/installer.d/0000-customize.yaml");
    scratch.run_kindling("iso customize image.iso").expect_failure("already customized; use -f to force.");
    customize("").expect_success();
    assert_pristine(full_featured_image(), &scratch);
}

#[test]
fn customize_rejects_unsupported_features() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let era = image.recipe.era();
        for (options, supported, what) in [
            ("--dest-console ttyS0", era.has_directives(), "the destination console"),
            ("--network-keyfile wired.nmconnection", era.has_features(), "network settings"),
            ("--dest-device /dev/sda", era.has_features(), "installer configuration"),
            ("--live-karg-append quiet", image.has_kargs(), "live kernel arguments"),
        ] {
            let output = scratch.run_kindling(&format!("iso customize {options} -o - image.iso"));
            if !image.has_ignition() {
                assert_eq!(output.status.code(), Some(1));
            } else if supported {
                output.expect_success();
            } else {
                output.expect_failure(&format!("This OS image does not support customizing {what}."));
            }
        }
        assert_pristine(image, &scratch);
    });
}

#[test]
fn network_boot_files_are_extracted_unchanged() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let printed = scratch.run_kindling("iso extract pxe -o out/pxe image.iso").expect_text();
        let files = scratch.files();
        let mut count = 0;
        for (path, extent) in &image.truth.files {
            let Some(name) = path.strip_prefix("images/pxeboot/") else { continue };
            let file = format!("out/pxe/image-{name}");
            assert!(files[&file].bytes == image.extent_bytes(*extent), "{file} has wrong bytes");
            assert!(printed.lines().any(|line| line == file), "{file} is not named in {printed}");
            count += 1;
        }
        assert_eq!(printed.lines().count(), count);
        assert!(count >= 3);
    });
}

#[test]
fn minimal_images_are_extracted_without_the_rootfs() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let line = "iso extract minimal-iso image.iso minimal.iso --output-rootfs rootfs.img \
                    --rootfs-url https://example.com/rootfs.img";
        let extracted = scratch.run_kindling(line);
        if !image.has_kargs() {
            return extracted.expect_failure("No karg embed areas found");
        } else if !image.has_minimal() {
            extracted.expect_failure("does not support extracting a minimal ISO");
            return assert!(!scratch.has_file("rootfs.img") && !scratch.has_file("minimal.iso"));
        }
        assert!(extracted.expect_success().is_empty());
        assert!(scratch.read("rootfs.img") == image.file_bytes("images/pxeboot/rootfs.img"));
        let minimal = scratch.read("minimal.iso");
        assert_eq!(minimal.len() as u64, image.truth.minimal.as_ref().unwrap().image.len());
        let default = scratch.run_kindling("iso kargs show -d minimal.iso").expect_text();
        assert!(!default.contains("coreos.live"), "{default}");
        let kargs = scratch.run_kindling("iso kargs show minimal.iso").expect_text();
        assert_eq!(
            kargs,
            format!("{} coreos.live.rootfs_url=https://example.com/rootfs.img\n", default.trim_end())
        );
        assert_eq!(file_mode(&scratch.files(), "minimal.iso"), 0o600);
        let overwrite = scratch.run_kindling("iso extract minimal-iso image.iso minimal.iso");
        overwrite.expect_failure("File exists");
        let streamed = scratch
            .run_kindling("iso extract minimal-iso --rootfs-url https://example.com/rootfs.img image.iso");
        assert!(streamed.expect_success() == minimal, "file and stream differ");
        scratch.run_kindling("iso verify minimal.iso").expect_success();
        scratch.run_kindling("iso reset minimal.iso").expect_success();
        assert_eq!(scratch.run_kindling("iso kargs show minimal.iso").expect_text(), default);
        let again = scratch.run_kindling("iso extract minimal-iso minimal.iso");
        again.expect_failure("does not support extracting a minimal ISO");
        scratch.run_kindling("iso ignition embed -i config.ign image.iso").expect_success();
        let customised = scratch.run_kindling("iso extract minimal-iso image.iso");
        customised.expect_failure("Cannot operate on ISO with embedded customizations");
    });
}

#[test]
fn dev_show_matches_the_image() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let show = |options: &str| -> Value {
            let output = scratch.run_kindling(&format!("dev show iso {options} image.iso")).expect_text();
            assert!(output.ends_with('\n'));
            serde_json::from_str(&output).unwrap()
        };
        let volume = show("");
        let primary = &volume["header"]["descriptors"][0];
        assert_eq!(primary["type"], "primary");
        assert_eq!(primary["volume_id"], image.recipe.volume_id());
        assert_eq!(primary["volume_space_size"], image.truth.blocks);
        let records = volume["records"].as_array().unwrap();
        assert!(records.len() > image.truth.files.len());
        if let Some(area) = image.truth.ignition {
            assert_eq!(show("--ignition"), serde_json::json!({"offset": area.offset, "length": area.len}));
        }
        let kargs = show("--kargs");
        let offsets =
            kargs["kargs"].as_array().into_iter().flatten().map(|area| area["offset"].as_u64().unwrap());
        assert!(offsets.eq(image.truth.kargs.iter().map(|area| area.offset)));
    });
}

#[test]
fn initrds_are_listed_and_extracted() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.run_kindling("iso extract pxe image.iso").expect_success();
    let listed = scratch.run_kindling("dev show initrd image-initrd.img").expect_text();
    assert!(listed.lines().any(|line| line == "etc/coreos-live-initramfs"), "{listed}");
    assert!(listed.lines().is_sorted());
    let some = scratch.run_kindling("dev show initrd image-initrd.img *features.json nothing").expect_text();
    assert_eq!(some, "etc/coreos/features.json\n");
    assert_eq!(scratch.run_kindling("dev show initrd image-initrd.img nothing").expect_text(), "");
    let extracted =
        scratch.run_kindling("dev extract initrd -v -C out image-initrd.img etc/coreos*").expect_text();
    let expected: Vec<String> = listed
        .lines()
        .filter(|name| name.starts_with("etc/coreos"))
        .map(|name| format!("out/{name}\n"))
        .collect();
    assert!(expected.len() > 1);
    assert_eq!(extracted, expected.concat());
    assert!(scratch.run_kindling("dev extract initrd -C all image-initrd.img").expect_success().is_empty());
    let all: Vec<String> =
        scratch.names().into_iter().filter_map(|name| Some(name.strip_prefix("all/")?.to_owned())).collect();
    assert_eq!(all.join("\n") + "\n", listed);
    let again = scratch.run_kindling("dev extract initrd -C out image-initrd.img");
    again.expect_failure("File exists");
}

#[test]
fn configs_and_keyfiles_are_wrapped_for_network_boots() {
    let scratch = full_featured_image().scratch_with_image();
    let wrapped = scratch.run_kindling("pxe ignition wrap -i config.ign").expect_success();
    assert!(wrapped.starts_with(b"\xFD7zXZ\0"));
    scratch.write("old.img", "the old content is overwritten, and it was longer: ".repeat(100));
    scratch.run_kindling("pxe ignition wrap -i config.ign -o old.img").expect_success();
    assert!(scratch.read("old.img") == wrapped);
    assert_eq!(scratch.run_kindling("pxe ignition unwrap old.img").expect_text(), CONFIG);
    let unwrapped = scratch.command(["pxe", "ignition", "unwrap"]).stdin(wrapped).run();
    assert_eq!(unwrapped.expect_text(), CONFIG);
    let keyfiles = scratch.run_kindling("pxe network wrap -k wired.nmconnection").expect_success();
    scratch.write("network.img", keyfiles);
    let listed = scratch.run_kindling("pxe network unwrap network.img").expect_text();
    assert_eq!(listed, format!("########## wired.nmconnection ##########\n{KEYFILE}"));
    assert_eq!(
        scratch.run_kindling("pxe network unwrap -C out network.img").expect_text(),
        "out/wired.nmconnection\n"
    );
    let unwrap = scratch.run_kindling("pxe ignition unwrap network.img");
    unwrap.expect_failure("couldn't find Ignition config in archive (network.img)");
    scratch.run_kindling("pxe network unwrap old.img").expect_failure("No embedded network settings.");
    let twice = scratch.run_kindling("pxe network wrap -k wired.nmconnection -k ./wired.nmconnection");
    twice.expect_failure("multiple input files named");
}

#[test]
fn initrds_are_customised_for_network_boots() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let initrd = image.file_bytes("images/pxeboot/initrd.img");
        scratch.write("initrd.img", initrd);
        let customized =
            scratch.run_kindling("pxe customize --live-ignition config.ign -o out.img initrd.img");
        assert!(customized.stderr.contains("ignition.firstboot ignition.platform.id=metal"));
        assert!(customized.expect_success().is_empty());
        let out = scratch.read("out.img");
        assert!(out.starts_with(initrd) && out[initrd.len()..].starts_with(b"\xFD7zXZ\0"));
        let config = scratch.run_kindling("pxe ignition unwrap out.img").expect_text();
        assert!(config.starts_with(r#"{"ignition":{"config":{"merge":"#), "{config}");
        scratch
            .run_kindling("pxe customize -o more.img out.img")
            .expect_failure("input is already customized");
        scratch.run_kindling("pxe customize -o out.img initrd.img").expect_failure("File exists");
        let stream =
            scratch.run_kindling("pxe customize --live-ignition config.ign -o - initrd.img").expect_success();
        assert!(stream == out, "file and stream differ");
        assert_eq!(file_mode(&scratch.files(), "out.img"), 0o600);
    });
    let scratch = full_featured_image().scratch_with_image();
    scratch.run_kindling("pxe ignition wrap -i config.ign -o other.img").expect_success();
    let other = scratch.run_kindling("pxe customize -o out.img other.img");
    other.expect_failure("not a CoreOS live initramfs image");
    assert!(!scratch.has_file("out.img"));
}

#[test]
fn deprecated_spellings_warn() {
    let scratch = full_featured_image().scratch_with_image();
    for (line, stdout) in [("embed -c config.ign", ""), ("show", CONFIG), ("remove", "")] {
        let output = scratch.run_kindling(&format!("iso {line} image.iso"));
        let verb = line.split(' ').next().unwrap();
        assert!(output.stderr.contains(&format!("`iso {verb}` is deprecated; use `iso ignition {verb}`.")));
        assert_eq!(output.expect_text(), stdout);
    }
    assert_pristine(full_featured_image(), &scratch);
}

#[test]
fn valid_images_pass_inspect_and_verify() {
    check_each(all_fixtures(), FixtureImage::name, |image| {
        let scratch = image.scratch_with_image();
        let report: Value =
            serde_json::from_str(&scratch.run_kindling("iso inspect --json image.iso").expect_text())
                .unwrap();
        assert_eq!(report["volume"]["id"], image.recipe.volume_id());
        let text = scratch.run_kindling("iso inspect image.iso").expect_text();
        assert!(text.contains(&image.recipe.volume_id()), "{text}");
        let checks = scratch.run_kindling("iso verify image.iso");
        assert!(!checks.stdout_text().contains("WRONG"), "{}", checks.stdout_text());
        checks.expect_success();
        let checks: Value =
            serde_json::from_str(&scratch.run_kindling("iso verify --json image.iso").expect_text()).unwrap();
        assert!(checks.as_array().is_some_and(|checks| !checks.is_empty()));
    });
}

#[test]
fn inspect_shows_embedded_data() {
    let scratch = full_featured_image().scratch_with_image();
    let line = "iso customize --live-ignition config.ign --network-keyfile wired.nmconnection \
                --live-karg-append quiet image.iso";
    scratch.run_kindling(line).expect_success();
    let text = scratch.run_kindling("iso inspect image.iso").expect_text();
    for part in ["config.ign", "etc/coreos-firstboot-network/wired.nmconnection", " quiet\n", "1 merged"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    scratch.run_kindling("iso verify image.iso").expect_success();
}

/// The report on an edited image shows the edit, and whether its boot files are the same as in the base image.
#[test]
fn inspect_compares_boot_files_with_the_base() {
    let scratch = full_featured_image().scratch_with_image();
    let argument = format!("long={}", "x".repeat(1500));
    let line = format!("iso kargs modify --grow -a {argument} -o new.iso image.iso");
    scratch.run_kindling(&line).expect_success();
    let text = scratch.run_kindling("iso inspect image.iso").expect_text();
    assert!(text.contains("Layout:        original\n"), "{text}");
    let text = scratch.run_kindling("iso inspect --base image.iso new.iso").expect_text();
    assert!(text.contains("new: the kernel arguments are longer than their areas\n"), "{text}");
    assert!(text.contains("identical to image.iso\n"), "{text}");
    let kernel = scratch.run_kindling("iso inspect --json new.iso").expect_text();
    let kernel: Value = serde_json::from_str(&kernel).unwrap();
    assert!(kernel["boot_files"].as_array().unwrap().iter().any(|it| it["path"] == "images/pxeboot/vmlinuz"));
    scratch.write("other.iso", &fixture(Architecture::Aarch64, Era::E2024_12).bytes);
    let text = scratch.run_kindling("iso inspect --base other.iso new.iso").expect_text();
    assert!(text.contains("Boot files:    different from other.iso: "), "{text}");
}

/// Images without a minimal description, and URLs that do not fit into an image with one.
#[test]
fn minimal_iso_is_written_by_relayout() {
    let url = format!("http://192.0.2.1/{}", "x".repeat(1200));
    for (image, url) in [
        (fixture(Architecture::X86_64, Era::E2021_01), "http://192.0.2.1/rootfs"),
        (full_featured_image(), &url),
    ] {
        let scratch = image.scratch_with_image();
        let refused =
            scratch.run_kindling(&format!("iso extract minimal-iso --rootfs-url {url} image.iso no.iso"));
        refused.expect_failure("image.iso");
        assert!(!scratch.has_file("no.iso"));
        let line =
            format!("iso extract minimal-iso --relayout --stats --rootfs-url {url} image.iso minimal.iso");
        let output = scratch.run_kindling(&line);
        assert!(output.stderr.contains("shared with the base"), "{}", output.stderr);
        output.expect_success();
        let kargs = scratch.run_kindling("iso kargs show minimal.iso").expect_text();
        assert!(kargs.contains(&format!("coreos.live.rootfs_url={url}")), "{kargs}");
        assert!(!kargs.contains("coreos.liveiso"), "{kargs}");
        assert!(scratch.read("minimal.iso").len() < image.bytes.len());
        scratch.run_kindling("iso verify minimal.iso").expect_success();
    }
}

#[test]
fn rejects_wrong_minimal_description_without_relayout() {
    let image = full_featured_image();
    let scratch = image.scratch_with_image();
    let mut wrong = image.bytes.clone();
    wrong[usize::try_from(image.truth.files["images/pxeboot/initrd.img"].offset).unwrap() + 200] ^= 1;
    scratch.write("image.iso", &wrong);
    scratch.run_kindling("iso extract minimal-iso image.iso no.iso").expect_failure("wrong final digest");
    assert!(!scratch.has_file("no.iso"));
    scratch.run_kindling("iso extract minimal-iso --relayout image.iso minimal.iso").expect_success();
    let inspected = scratch.run_kindling("iso inspect minimal.iso").expect_text();
    assert!(inspected.contains("the image's description of its minimal form is wrong"), "{inspected}");
    scratch.run_kindling("iso verify minimal.iso").expect_success();
}

#[test]
fn diff_exits_0_for_equal_and_1_for_different_images() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.run_kindling("iso reset -o same.iso image.iso").expect_success();
    assert_eq!(scratch.run_kindling("iso diff image.iso same.iso").expect_text(), "");
    scratch.run_kindling("iso kargs modify -a quiet -o other.iso image.iso").expect_success();
    for options in ["", "--json"] {
        let output = scratch.run_kindling(&format!("iso diff {options} image.iso other.iso"));
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout_text().contains("quiet"), "{}", output.stdout_text());
        assert_eq!(output.stderr, "");
    }
}

/// Exit codes like diff(1) and cmp(1), so that scripts can distinguish different images from unusable images.
#[test]
fn diff_exits_2_for_unusable_inputs() {
    let scratch = full_featured_image().scratch_with_image();
    for line in ["iso diff image.iso missing.iso", "iso diff config.ign image.iso"] {
        let output = scratch.run_kindling(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", output.stderr);
        assert!(
            output.stderr.starts_with("Error: ") && output.stdout.is_empty(),
            "{line}: {}",
            output.stderr
        );
    }
}

#[test]
fn image_texts_are_printed_verbatim_on_one_line() {
    let scratch = full_featured_image().scratch_with_image();
    let modify = ["iso", "kargs", "modify", "-a", "a=\"b c\"", "-o", "quoted.iso", "image.iso"];
    scratch.command(modify).run().expect_success();
    let output = scratch.run_kindling("iso diff image.iso quoted.iso");
    assert!(output.stdout_text().contains(" a=\"b c\"\n"), "{}", output.stdout_text());
    assert!(scratch.run_kindling("iso inspect quoted.iso").expect_text().contains(" a=\"b c\"\n"));
    let mut image = full_featured_image().bytes.clone();
    let area = full_featured_image().truth.kargs[0];
    image[usize::try_from(area.offset).unwrap()] = b'"';
    scratch.write("other.iso", &image);
    let output = scratch.run_kindling("iso verify other.iso");
    let report = output.stdout_text();
    assert!(report.contains("kargs don't match at all offsets: \"") && !report.contains("\\'"), "{report}");
    // ECMA-119, 8.4.7: the volume identifier.
    let id = &mut image[32768 + 40..][..32];
    id[..16].copy_from_slice(b"a\nGeneration: no");
    scratch.write("other.iso", &image);
    let text = scratch.run_kindling("iso inspect other.iso").expect_text();
    assert!(text.contains("\nVolume:        a\\nGeneration: no"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("Generation: no")), "{text}");
}

#[test]
fn output_is_reproducible() {
    let lines = [
        "iso ignition embed -i config.ign -o - image.iso",
        "iso network embed -k wired.nmconnection -o - image.iso",
        "iso customize --live-ignition config.ign --dest-device /dev/sda -o - image.iso",
        "pxe ignition wrap -i config.ign",
        "iso inspect image.iso",
    ];
    let (one, other) =
        (full_featured_image().scratch_with_image(), full_featured_image().scratch_with_image());
    for line in lines {
        assert!(
            one.run_kindling(line).expect_success() == other.run_kindling(line).expect_success(),
            "{line}"
        );
    }
}
