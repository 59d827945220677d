//! Every verb on every generated image, held against what the generator knows about it.

use fixtures::{Architecture, Era};
use serde_json::Value;

use crate::support::{CONFIG, Image, KEYFILE, Scratch, each, few, good, image, slice};
use crate::{mode, usual};

/// Fails unless an edit in place has changed nothing outside of these places.
#[track_caller]
fn assert_only_changed(image: &Image, scratch: &Scratch, places: &[fixtures::Extent]) {
    let mut edited = scratch.read("image.iso");
    for place in places {
        let start = usize::try_from(place.offset).unwrap();
        let original = image.slice(*place);
        edited[start..start + original.len()].copy_from_slice(original);
    }
    assert!(edited == image.bytes, "bytes outside of the areas have changed");
}

#[track_caller]
fn assert_pristine(image: &Image, scratch: &Scratch) {
    assert!(scratch.read("image.iso") == image.bytes, "the image is not as it was");
}

#[test]
fn a_config_is_embedded_shown_and_removed() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let embedded = scratch.kindling("iso ignition embed -i config.ign image.iso");
        let Some(area) = image.truth.ignition else {
            embedded.failure("Unrecognized CoreOS ISO image");
            return assert_pristine(image, &scratch);
        };
        assert!(embedded.success().is_empty());
        assert_only_changed(image, &scratch, &[area]);
        assert_eq!(scratch.kindling("iso ignition show image.iso").printed(), CONFIG);
        let again = scratch.kindling("iso ignition embed -i config.ign image.iso");
        again.failure("already has an embedded Ignition config; use -f to force.");
        let other = scratch.command(["iso", "ignition", "embed", "--force", "image.iso"]).stdin("other");
        other.output().success();
        assert_eq!(scratch.kindling("iso ignition show image.iso").printed(), "other");
        scratch.kindling("iso ignition remove image.iso").success();
        assert_pristine(image, &scratch);
        scratch.kindling("iso ignition show image.iso").failure("No embedded Ignition config.");
        scratch.kindling("iso ignition remove image.iso").success();
        assert_pristine(image, &scratch);
    });
}

#[test]
fn network_settings_are_embedded_extracted_and_removed() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        scratch.write("more/bond.nmconnection", "[bond]\n");
        let line = "iso network embed -k wired.nmconnection -k more/bond.nmconnection image.iso";
        let embedded = scratch.kindling(line);
        if !image.recipe.era().has_features() {
            return embedded.failure("This OS image does not support customizing network settings.");
        }
        let Some(area) = image.truth.ignition else {
            return embedded.failure("Unrecognized CoreOS ISO image");
        };
        embedded.success();
        assert_only_changed(image, &scratch, &[area]);
        let listed = scratch.kindling("iso network extract image.iso").printed();
        let expected = format!(
            "########## bond.nmconnection ##########\n[bond]\n\n########## wired.nmconnection ##########\n{KEYFILE}"
        );
        assert_eq!(listed, expected);
        let printed = scratch.kindling("iso network extract -C out image.iso").printed();
        assert_eq!(printed, "out/bond.nmconnection\nout/wired.nmconnection\n");
        assert_eq!(scratch.read("out/wired.nmconnection"), KEYFILE.as_bytes());
        assert_eq!(mode(&scratch.files(), "out/wired.nmconnection"), 0o600);
        scratch.kindling(line).failure("already has embedded network settings; use -f to force.");
        scratch.kindling("iso network embed -f -k wired.nmconnection image.iso").success();
        assert!(!scratch.kindling("iso network extract image.iso").printed().contains("bond"));
        scratch.kindling("iso network remove image.iso").success();
        assert_pristine(image, &scratch);
        scratch.kindling("iso network extract image.iso").failure("No embedded network settings.");
    });
}

#[test]
fn kernel_arguments_are_modified_in_every_area() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let shown = scratch.kindling("iso kargs show image.iso");
        if !image.has_kargs() {
            shown.failure("No karg embed areas found; old or corrupted CoreOS ISO image");
            scratch.kindling("iso kargs modify -a quiet image.iso").failure("No karg embed areas found");
            scratch.kindling("iso kargs reset image.iso").failure("No karg embed areas found");
            return assert_pristine(image, &scratch);
        }
        let default = image.recipe.default_kargs();
        assert_eq!(shown.printed(), format!("{default}\n"));
        let line =
            "iso kargs modify -r ignition.platform.id=metal=qemu -d ignition.firstboot -a quiet image.iso";
        scratch.kindling(line).success();
        let expected =
            default.replace("platform.id=metal", "platform.id=qemu").replace(" ignition.firstboot", "");
        let expected = format!("{} quiet", expected.trim());
        assert_eq!(scratch.kindling("iso kargs show image.iso").printed(), format!("{expected}\n"));
        assert_eq!(scratch.kindling("iso kargs show --default image.iso").printed(), format!("{default}\n"));
        assert_only_changed(image, &scratch, &image.truth.kargs);
        let (end, pad) =
            if image.recipe.architecture() == Architecture::S390x { (0, 0) } else { (b'\n', b'#') };
        let edited = scratch.read("image.iso");
        for area in &image.truth.kargs {
            let mut text = expected.clone().into_bytes();
            text.push(end);
            text.resize(usize::try_from(area.len).unwrap(), pad);
            assert!(slice(&edited, *area) == text, "the area at byte {}", area.offset);
        }
        scratch.kindling("iso kargs reset image.iso").success();
        assert_pristine(image, &scratch);
    });
}

#[test]
fn kernel_arguments_that_are_too_long_or_malformed_change_nothing() {
    each(
        few(),
        |image| image.name(),
        |image| {
            let scratch = image.scratch();
            let room =
                usize::try_from(image.truth.kargs[0].len).unwrap() - image.recipe.default_kargs().len() - 2;
            let modify = |argument: &str| {
                scratch.command(["iso", "kargs", "modify", "-a", argument, "image.iso"]).output()
            };
            let refused = modify(&"x".repeat(room + 1));
            refused.failure("kargs too large for area");
            refused.failure("(see --grow)");
            assert_pristine(image, &scratch);
            modify(&"x".repeat(room)).success();
            scratch.kindling("iso kargs reset image.iso").success();
            for bad in ["key", "key=old", "key=old=", "=old=new", "key=a=b=c"] {
                scratch
                    .kindling(&format!("iso kargs modify -r {bad} image.iso"))
                    .failure("format should be: KEY=OLD=NEW");
            }
            modify("a\nb").failure("control character");
            assert_pristine(image, &scratch);
        },
    );
}

#[test]
fn reset_takes_every_change_back() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        if !image.has_ignition() {
            return scratch.kindling("iso reset image.iso").failure("Unrecognized CoreOS ISO image");
        }
        scratch.kindling("iso ignition embed -i config.ign image.iso").success();
        if image.has_kargs() {
            scratch.kindling("iso kargs modify -a quiet image.iso").success();
        }
        scratch.kindling("iso reset image.iso").success();
        assert_pristine(image, &scratch);
    });
}

#[test]
fn all_three_outputs_have_the_same_bytes() {
    each(
        few(),
        |image| image.name(),
        |image| {
            let scratch = image.scratch();
            for edit in [
                "iso ignition embed -f -i config.ign",
                "iso kargs modify -a quiet",
                "iso customize -f --live-karg-append x --live-ignition config.ign",
                "iso ignition remove",
                "iso kargs reset",
                "iso reset",
            ] {
                let stream = scratch.kindling(&format!("{edit} -o - image.iso")).success();
                assert!(scratch.kindling(&format!("{edit} --output out.iso image.iso")).success().is_empty());
                assert!(scratch.kindling(&format!("{edit} image.iso")).success().is_empty());
                assert!(scratch.read("out.iso") == stream, "{edit}: file and stream differ");
                assert!(scratch.read("image.iso") == stream, "{edit}: edit in place and stream differ");
                assert_eq!(mode(&scratch.files(), "out.iso"), 0o600, "{edit}");
                scratch.remove("out.iso");
            }
            assert_pristine(image, &scratch);
        },
    );
}

#[test]
fn customize_says_what_the_media_will_do() {
    let scratch = usual().scratch();
    scratch.write("install.yaml", "dest-device: /dev/vda\n");
    scratch.write("hook.sh", "#!/bin/sh\n");
    let customize = |options: &str| scratch.kindling(&format!("iso customize -f {options} image.iso"));
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
        assert!(output.success().is_empty());
    }
    let config = scratch.kindling("iso ignition show image.iso").printed();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["ignition"]["version"], "3.3.0");
    assert_eq!(config["storage"]["files"][0]["path"], "/etc/coreos/installer.d/0000-customize.yaml");
    scratch.kindling("iso customize image.iso").failure("already customized; use -f to force.");
    customize("").success();
    assert_pristine(usual(), &scratch);
}

#[test]
fn customize_refuses_what_an_image_does_not_support() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let era = image.recipe.era();
        for (options, supported, what) in [
            ("--dest-console ttyS0", era.has_directives(), "the destination console"),
            ("--network-keyfile wired.nmconnection", era.has_features(), "network settings"),
            ("--dest-device /dev/sda", era.has_features(), "installer configuration"),
            ("--live-karg-append quiet", image.has_kargs(), "live kernel arguments"),
        ] {
            let output = scratch.kindling(&format!("iso customize {options} -o - image.iso"));
            if !image.has_ignition() {
                assert_eq!(output.status.code(), Some(1));
            } else if supported {
                output.success();
            } else {
                output.failure(&format!("This OS image does not support customizing {what}."));
            }
        }
        assert_pristine(image, &scratch);
    });
}

#[test]
fn network_boot_files_are_extracted_as_they_are() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let printed = scratch.kindling("iso extract pxe -o out/pxe image.iso").printed();
        let files = scratch.files();
        let mut count = 0;
        for (path, extent) in &image.truth.files {
            let Some(name) = path.strip_prefix("images/pxeboot/") else { continue };
            let file = format!("out/pxe/image-{name}");
            assert!(files[&file].bytes == image.slice(*extent), "{file} has other bytes");
            assert!(printed.lines().any(|line| line == file), "{file} is not named in {printed}");
            count += 1;
        }
        assert_eq!(printed.lines().count(), count);
        assert!(count >= 3);
    });
}

#[test]
fn minimal_images_are_extracted_without_the_root_file_system() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let line = "iso extract minimal-iso image.iso minimal.iso --output-rootfs rootfs.img \
                    --rootfs-url https://example.com/rootfs.img";
        let extracted = scratch.kindling(line);
        if !image.has_kargs() {
            return extracted.failure("No karg embed areas found");
        } else if !image.has_minimal() {
            extracted.failure("does not support extracting a minimal ISO");
            return assert!(!scratch.has("rootfs.img") && !scratch.has("minimal.iso"));
        }
        assert!(extracted.success().is_empty());
        assert!(scratch.read("rootfs.img") == image.file("images/pxeboot/rootfs.img"));
        let minimal = scratch.read("minimal.iso");
        assert_eq!(minimal.len() as u64, image.truth.minimal.as_ref().unwrap().image.len());
        let default = scratch.kindling("iso kargs show -d minimal.iso").printed();
        assert!(!default.contains("coreos.live"), "{default}");
        let shown = scratch.kindling("iso kargs show minimal.iso").printed();
        assert_eq!(
            shown,
            format!("{} coreos.live.rootfs_url=https://example.com/rootfs.img\n", default.trim_end())
        );
        assert_eq!(mode(&scratch.files(), "minimal.iso"), 0o600);
        let taken = scratch.kindling("iso extract minimal-iso image.iso minimal.iso");
        taken.failure("File exists");
        let streamed =
            scratch.kindling("iso extract minimal-iso --rootfs-url https://example.com/rootfs.img image.iso");
        assert!(streamed.success() == minimal, "file and stream differ");
        scratch.kindling("iso verify minimal.iso").success();
        scratch.kindling("iso reset minimal.iso").success();
        assert_eq!(scratch.kindling("iso kargs show minimal.iso").printed(), default);
        let again = scratch.kindling("iso extract minimal-iso minimal.iso");
        again.failure("does not support extracting a minimal ISO");
        scratch.kindling("iso ignition embed -i config.ign image.iso").success();
        let customised = scratch.kindling("iso extract minimal-iso image.iso");
        customised.failure("Cannot operate on ISO with embedded customizations");
    });
}

#[test]
fn developer_commands_tell_the_truth() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let show = |options: &str| -> Value {
            let shown = scratch.kindling(&format!("dev show iso {options} image.iso")).printed();
            assert!(shown.ends_with('\n'));
            serde_json::from_str(&shown).unwrap()
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
    let scratch = usual().scratch();
    scratch.kindling("iso extract pxe image.iso").success();
    let listed = scratch.kindling("dev show initrd image-initrd.img").printed();
    assert!(listed.lines().any(|line| line == "etc/coreos-live-initramfs"), "{listed}");
    assert!(listed.lines().is_sorted());
    let some = scratch.kindling("dev show initrd image-initrd.img *features.json nothing").printed();
    assert_eq!(some, "etc/coreos/features.json\n");
    assert_eq!(scratch.kindling("dev show initrd image-initrd.img nothing").printed(), "");
    let extracted = scratch.kindling("dev extract initrd -v -C out image-initrd.img etc/coreos*").printed();
    let expected: Vec<String> = listed
        .lines()
        .filter(|name| name.starts_with("etc/coreos"))
        .map(|name| format!("out/{name}\n"))
        .collect();
    assert!(expected.len() > 1);
    assert_eq!(extracted, expected.concat());
    assert!(scratch.kindling("dev extract initrd -C all image-initrd.img").success().is_empty());
    let all: Vec<String> =
        scratch.names().into_iter().filter_map(|name| Some(name.strip_prefix("all/")?.to_owned())).collect();
    assert_eq!(all.join("\n") + "\n", listed);
    let again = scratch.kindling("dev extract initrd -C out image-initrd.img");
    again.failure("File exists");
}

#[test]
fn configs_and_keyfiles_are_wrapped_for_network_boots() {
    let scratch = usual().scratch();
    let wrapped = scratch.kindling("pxe ignition wrap -i config.ign").success();
    assert!(wrapped.starts_with(b"\xFD7zXZ\0"));
    scratch.write("old.img", "what was there is overwritten, and it was longer: ".repeat(100));
    scratch.kindling("pxe ignition wrap -i config.ign -o old.img").success();
    assert!(scratch.read("old.img") == wrapped);
    assert_eq!(scratch.kindling("pxe ignition unwrap old.img").printed(), CONFIG);
    let unwrapped = scratch.command(["pxe", "ignition", "unwrap"]).stdin(wrapped).output();
    assert_eq!(unwrapped.printed(), CONFIG);
    let keyfiles = scratch.kindling("pxe network wrap -k wired.nmconnection").success();
    scratch.write("network.img", keyfiles);
    let listed = scratch.kindling("pxe network unwrap network.img").printed();
    assert_eq!(listed, format!("########## wired.nmconnection ##########\n{KEYFILE}"));
    assert_eq!(
        scratch.kindling("pxe network unwrap -C out network.img").printed(),
        "out/wired.nmconnection\n"
    );
    let unwrap = scratch.kindling("pxe ignition unwrap network.img");
    unwrap.failure("couldn't find Ignition config in archive (network.img)");
    scratch.kindling("pxe network unwrap old.img").failure("No embedded network settings.");
    let twice = scratch.kindling("pxe network wrap -k wired.nmconnection -k ./wired.nmconnection");
    twice.failure("multiple input files named");
}

#[test]
fn initrds_are_customised_for_network_boots() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let initrd = image.file("images/pxeboot/initrd.img");
        scratch.write("initrd.img", initrd);
        let customized = scratch.kindling("pxe customize --live-ignition config.ign -o out.img initrd.img");
        assert!(customized.stderr.contains("ignition.firstboot ignition.platform.id=metal"));
        assert!(customized.success().is_empty());
        let out = scratch.read("out.img");
        assert!(out.starts_with(initrd) && out[initrd.len()..].starts_with(b"\xFD7zXZ\0"));
        let config = scratch.kindling("pxe ignition unwrap out.img").printed();
        assert!(config.starts_with(r#"{"ignition":{"config":{"merge":"#), "{config}");
        scratch.kindling("pxe customize -o more.img out.img").failure("input is already customized");
        scratch.kindling("pxe customize -o out.img initrd.img").failure("File exists");
        let stream = scratch.kindling("pxe customize --live-ignition config.ign -o - initrd.img").success();
        assert!(stream == out, "file and stream differ");
        assert_eq!(mode(&scratch.files(), "out.img"), 0o600);
    });
    let scratch = usual().scratch();
    scratch.kindling("pxe ignition wrap -i config.ign -o other.img").success();
    let other = scratch.kindling("pxe customize -o out.img other.img");
    other.failure("not a CoreOS live initramfs image");
    assert!(!scratch.has("out.img"));
}

#[test]
fn the_former_spellings_say_that_they_are_former() {
    let scratch = usual().scratch();
    for (line, stdout) in [("embed -c config.ign", ""), ("show", CONFIG), ("remove", "")] {
        let output = scratch.kindling(&format!("iso {line} image.iso"));
        let verb = line.split(' ').next().unwrap();
        assert!(output.stderr.contains(&format!("`iso {verb}` is deprecated; use `iso ignition {verb}`.")));
        assert_eq!(output.printed(), stdout);
    }
    assert_pristine(usual(), &scratch);
}

#[test]
fn good_images_are_inspected_and_found_sound() {
    each(good(), Image::name, |image| {
        let scratch = image.scratch();
        let report: Value =
            serde_json::from_str(&scratch.kindling("iso inspect --json image.iso").printed()).unwrap();
        assert_eq!(report["volume"]["id"], image.recipe.volume_id());
        let text = scratch.kindling("iso inspect image.iso").printed();
        assert!(text.contains(&image.recipe.volume_id()), "{text}");
        let checks = scratch.kindling("iso verify image.iso");
        assert!(!checks.text().contains("WRONG"), "{}", checks.text());
        checks.success();
        let checks: Value =
            serde_json::from_str(&scratch.kindling("iso verify --json image.iso").printed()).unwrap();
        assert!(checks.as_array().is_some_and(|checks| !checks.is_empty()));
    });
}

#[test]
fn inspect_shows_what_was_embedded() {
    let scratch = usual().scratch();
    let line = "iso customize --live-ignition config.ign --network-keyfile wired.nmconnection \
                --live-karg-append quiet image.iso";
    scratch.kindling(line).success();
    let text = scratch.kindling("iso inspect image.iso").printed();
    for part in ["config.ign", "etc/coreos-firstboot-network/wired.nmconnection", " quiet\n", "1 merged"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    scratch.kindling("iso verify image.iso").success();
}

/// A product says how it came to be, and that it boots what its base boots.
#[test]
fn inspect_compares_boot_files_with_those_of_a_base() {
    let scratch = usual().scratch();
    let argument = format!("long={}", "x".repeat(1500));
    let line = format!("iso kargs modify --grow -a {argument} -o new.iso image.iso");
    scratch.kindling(&line).success();
    let text = scratch.kindling("iso inspect image.iso").printed();
    assert!(text.contains("Layout:        as mastered\n"), "{text}");
    let text = scratch.kindling("iso inspect --base image.iso new.iso").printed();
    assert!(text.contains("new: the kernel arguments are longer than their areas\n"), "{text}");
    assert!(text.contains("byte for byte those of image.iso\n"), "{text}");
    let kernel = scratch.kindling("iso inspect --json new.iso").printed();
    let kernel: Value = serde_json::from_str(&kernel).unwrap();
    assert!(kernel["boot_files"].as_array().unwrap().iter().any(|it| it["path"] == "images/pxeboot/vmlinuz"));
    scratch.write("other.iso", &image(Architecture::Aarch64, Era::E2024_12).bytes);
    let text = scratch.kindling("iso inspect --base other.iso new.iso").printed();
    assert!(text.contains("Boot files:    not those of other.iso: "), "{text}");
}

/// Images that do not describe their minimal form, and URLs that do not fit into a described one.
#[test]
fn a_minimal_iso_by_a_new_layout() {
    let url = format!("http://192.0.2.1/{}", "x".repeat(1200));
    for (image, url) in
        [(image(Architecture::X86_64, Era::E2021_01), "http://192.0.2.1/rootfs"), (usual(), &url)]
    {
        let scratch = image.scratch();
        let refused =
            scratch.kindling(&format!("iso extract minimal-iso --rootfs-url {url} image.iso no.iso"));
        refused.failure("image.iso");
        assert!(!scratch.has("no.iso"));
        let line =
            format!("iso extract minimal-iso --relayout --stats --rootfs-url {url} image.iso minimal.iso");
        let output = scratch.kindling(&line);
        assert!(output.stderr.contains("shared with the base"), "{}", output.stderr);
        output.success();
        let kargs = scratch.kindling("iso kargs show minimal.iso").printed();
        assert!(kargs.contains(&format!("coreos.live.rootfs_url={url}")), "{kargs}");
        assert!(!kargs.contains("coreos.liveiso"), "{kargs}");
        assert!(scratch.read("minimal.iso").len() < image.bytes.len());
        scratch.kindling("iso verify minimal.iso").success();
    }
}

#[test]
fn wrong_description_of_the_minimal_iso_is_refused_without_relayout() {
    let image = usual();
    let scratch = image.scratch();
    let mut wrong = image.bytes.clone();
    wrong[usize::try_from(image.truth.files["images/pxeboot/initrd.img"].offset).unwrap() + 200] ^= 1;
    scratch.write("image.iso", &wrong);
    scratch.kindling("iso extract minimal-iso image.iso no.iso").failure("wrong final digest");
    assert!(!scratch.has("no.iso"));
    scratch.kindling("iso extract minimal-iso --relayout image.iso minimal.iso").success();
    let inspected = scratch.kindling("iso inspect minimal.iso").printed();
    assert!(inspected.contains("the image's description of its minimal form is wrong"), "{inspected}");
    scratch.kindling("iso verify minimal.iso").success();
}

#[test]
fn diff_exits_0_for_equal_images_and_1_for_others() {
    let scratch = usual().scratch();
    scratch.kindling("iso reset -o same.iso image.iso").success();
    assert_eq!(scratch.kindling("iso diff image.iso same.iso").printed(), "");
    scratch.kindling("iso kargs modify -a quiet -o other.iso image.iso").success();
    for options in ["", "--json"] {
        let output = scratch.kindling(&format!("iso diff {options} image.iso other.iso"));
        assert_eq!(output.status.code(), Some(1));
        assert!(output.text().contains("quiet"), "{}", output.text());
        assert_eq!(output.stderr, "");
    }
}

/// As diff(1) and cmp(1): who compares in a script tells other images from none.
#[test]
fn diff_exits_2_where_there_is_nothing_to_compare() {
    let scratch = usual().scratch();
    for line in ["iso diff image.iso missing.iso", "iso diff --json config.ign image.iso"] {
        let output = scratch.kindling(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", output.stderr);
        assert!(
            output.stderr.starts_with("Error: ") && output.stdout.is_empty(),
            "{line}: {}",
            output.stderr
        );
    }
}

#[test]
fn texts_of_an_image_are_shown_as_they_are_and_on_their_line() {
    let scratch = usual().scratch();
    let modify = ["iso", "kargs", "modify", "-a", "a=\"b c\"", "-o", "quoted.iso", "image.iso"];
    scratch.command(modify).output().success();
    let output = scratch.kindling("iso diff image.iso quoted.iso");
    assert!(output.text().contains(" a=\"b c\"\n"), "{}", output.text());
    assert!(scratch.kindling("iso inspect quoted.iso").printed().contains(" a=\"b c\"\n"));
    let mut image = usual().bytes.clone();
    let area = usual().truth.kargs[0];
    image[usize::try_from(area.offset).unwrap()] = b'"';
    scratch.write("other.iso", &image);
    let output = scratch.kindling("iso verify other.iso");
    let told = output.text();
    assert!(told.contains("kargs don't match at all offsets: \"") && !told.contains("\\'"), "{told}");
    // ECMA-119, 8.4.7: the volume identifier.
    let id = &mut image[32768 + 40..][..32];
    id[..16].copy_from_slice(b"a\nGeneration: no");
    scratch.write("other.iso", &image);
    let text = scratch.kindling("iso inspect other.iso").printed();
    assert!(text.contains("\nVolume:        a\\nGeneration: no"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("Generation: no")), "{text}");
}

#[test]
fn output_is_the_same_every_time() {
    let lines = [
        "iso ignition embed -i config.ign -o - image.iso",
        "iso network embed -k wired.nmconnection -o - image.iso",
        "iso customize --live-ignition config.ign --dest-device /dev/sda -o - image.iso",
        "pxe ignition wrap -i config.ign",
        "iso inspect image.iso",
    ];
    let (one, other) = (usual().scratch(), usual().scratch());
    for line in lines {
        assert!(one.kindling(line).success() == other.kindling(line).success(), "{line}");
    }
}
