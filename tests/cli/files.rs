//! Files that are missing, wrong, taken or not to be written.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::Scratch;
use crate::{mode, usual};

/// Every verb that reads an image, with the place of its name.
const IMAGE_VERBS: &[&str] = &[
    "iso ignition embed -i config.ign {}",
    "iso ignition show {}",
    "iso ignition remove {}",
    "iso network embed -k wired.nmconnection {}",
    "iso network extract {}",
    "iso network remove {}",
    "iso kargs modify -a quiet {}",
    "iso kargs reset {}",
    "iso kargs show {}",
    "iso customize --live-ignition config.ign {}",
    "iso reset {}",
    "iso reset -o out.iso {}",
    "iso reset -o - {}",
    "iso extract pxe -o pxe {}",
    "iso extract nmstatectl -o nmstate.img {}",
    "iso extract minimal-iso {} out.iso",
    "iso extract minimal-iso {}",
    "iso inspect {}",
    "iso diff {} {}",
    "iso verify {}",
    "iso embed -c config.ign {}",
    "iso show {}",
    "iso remove {}",
    "dev show iso {}",
    "dev show iso --ignition {}",
    "dev show iso --kargs {}",
];

/// Every verb that reads an initrd.
const INITRD_VERBS: &[&str] = &[
    "pxe customize -o out.img {}",
    "pxe ignition unwrap {}",
    "pxe network unwrap {}",
    "dev show initrd {}",
    "dev extract initrd -C out {}",
];

/// Runs the verbs on a file that none of them can use. Each must name it, and leave nothing.
#[track_caller]
fn assert_refused(scratch: &Scratch, verbs: &[&str], name: &str, phrase: &str) {
    let before = scratch.names();
    for verb in verbs {
        let output = scratch.kindling(&verb.replace("{}", name));
        // To `diff`, 1 is what differs.
        let code = if verb.starts_with("iso diff") { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{verb} {name}: {}", output.stderr);
        assert!(
            output.stderr.matches("Error: ").count() == 1 && output.stderr.contains(name),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains(phrase), "{verb}: no {phrase:?} in {}", output.stderr);
        assert!(output.stdout.is_empty(), "{verb} {name}: output before the error");
        assert_eq!(scratch.names(), before, "{verb} {name}");
        assert!(!scratch.has("pxe") && !scratch.has("out"), "{verb} {name} has made a folder");
    }
}

#[test]
fn a_missing_file_is_named() {
    let scratch = usual().scratch();
    for verbs in [IMAGE_VERBS, INITRD_VERBS] {
        assert_refused(&scratch, verbs, "missing.file", "No such file or directory");
        assert_refused(&scratch, verbs, "image.iso/inside", "Not a directory");
    }
    for line in [
        "iso ignition embed -i missing.file image.iso",
        "iso network embed -k missing.file image.iso",
        "iso customize --live-ignition missing.file image.iso",
        "iso customize --network-keyfile missing.file image.iso",
        "iso customize --pre-install missing.file image.iso",
        "pxe ignition wrap -i missing.file",
        "pxe network wrap -k missing.file",
    ] {
        scratch.kindling(line).failure("missing.file");
    }
    assert!(scratch.read("image.iso") == usual().bytes);
}

#[test]
fn a_folder_is_no_file() {
    let scratch = usual().scratch();
    fs::create_dir(scratch.path("folder.iso")).unwrap();
    for verbs in [IMAGE_VERBS, INITRD_VERBS] {
        assert_refused(&scratch, verbs, "folder.iso", "directory");
    }
    scratch.kindling("iso ignition embed -i folder.iso image.iso").failure("folder.iso");
}

#[test]
fn an_empty_file_is_no_image() {
    let scratch = usual().scratch();
    scratch.write("empty.iso", "");
    assert_refused(&scratch, IMAGE_VERBS, "empty.iso", "");
    scratch.write("short.iso", "short");
    assert_refused(&scratch, IMAGE_VERBS, "short.iso", "");
    // No bytes are no archives; there is nothing in them.
    assert_eq!(scratch.kindling("dev show initrd empty.iso").printed(), "");
    scratch.kindling("pxe customize -o out.img empty.iso").failure("not a CoreOS live initramfs image");
    assert!(!scratch.has("out.img"));
}

#[test]
fn a_truncated_image_is_told_from_a_wrong_one() {
    let scratch = usual().scratch();
    for divisor in [2, 3, 10] {
        scratch.write("image.part", &usual().bytes[..usual().bytes.len() / divisor]);
        assert_refused(&scratch, IMAGE_VERBS, "image.part", "ISO image is incomplete");
    }
}

#[test]
fn something_else_is_no_image_and_no_archive() {
    let scratch = usual().scratch();
    let text = "no image and no archive\n".repeat(10_000);
    scratch.write("text.file", text);
    assert_refused(&scratch, IMAGE_VERBS, "text.file", "");
    assert_refused(&scratch, INITRD_VERBS, "text.file", "decoding");
}

#[test]
fn an_image_that_may_not_be_written_is_copied_but_not_edited() {
    let scratch = usual().scratch();
    fs::set_permissions(scratch.path("image.iso"), Permissions::from_mode(0o400)).unwrap();
    scratch.kindling("iso kargs modify -a quiet -o out.iso image.iso").success();
    scratch.kindling("iso inspect image.iso").success();
    if OpenOptions::new().write(true).open(scratch.path("image.iso")).is_ok() {
        eprintln!("SKIPPED: this user may write everything");
        return;
    }
    let output = scratch.kindling("iso kargs modify -a quiet image.iso");
    output.failure("Permission denied");
    assert!(output.stderr.contains("image.iso"));
    fs::set_permissions(scratch.path("image.iso"), Permissions::from_mode(0o000)).unwrap();
    scratch.kindling("iso inspect image.iso").failure("Permission denied");
}

/// Verbs that write a new file `{}`.
const WRITING_VERBS: &[&str] = &[
    "iso ignition embed -i config.ign -o {} image.iso",
    "iso ignition remove -o {} image.iso",
    "iso network embed -k wired.nmconnection -o {} image.iso",
    "iso network remove -o {} image.iso",
    "iso kargs modify -a quiet -o {} image.iso",
    "iso kargs reset -o {} image.iso",
    "iso customize -o {} image.iso",
    "iso reset -o {} image.iso",
    "iso extract minimal-iso image.iso {}",
    "iso extract nmstatectl -o {} image.iso",
    "iso extract minimal-iso image.iso --output-rootfs {}",
    "pxe customize -o {} initrd.img",
];

fn scratch_with_initrd() -> Scratch {
    let scratch = usual().scratch();
    scratch.write("initrd.img", usual().file("images/pxeboot/initrd.img"));
    scratch
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_file_kept() {
    let scratch = scratch_with_initrd();
    scratch.write("taken", "mine");
    symlink("nowhere", scratch.path("dangling")).unwrap();
    fs::create_dir(scratch.path("folder")).unwrap();
    let before = scratch.names();
    for verb in WRITING_VERBS {
        for name in ["taken", "dangling", "folder", "image.iso", "./image.iso"] {
            let output = scratch.kindling(&verb.replace("{}", name));
            output.failure("File exists");
            assert!(output.stderr.contains(name), "{verb}: {}", output.stderr);
            assert!(output.stdout.is_empty(), "{verb}");
        }
    }
    assert_eq!(scratch.names(), before);
    assert_eq!(scratch.read("taken"), b"mine");
    assert!(scratch.read("image.iso") == usual().bytes);
    assert!(!scratch.path("nowhere").exists());
}

/// Of several files, one whose name is taken keeps all others away, and no path is printed.
#[test]
fn files_of_one_command_are_all_there_or_none_is() {
    let scratch = scratch_with_initrd();
    let hosts = ["eth0", "eth1"].map(|name| {
        let text = format!("interfaces:\n- name: {name}\n  type: ethernet\n  state: up\n");
        scratch.write(&format!("{name}.yaml"), text);
        format!("{name}.yaml")
    });
    scratch.write("a.nmconnection", "[a]\n");
    scratch.kindling("iso network embed -k a.nmconnection -k wired.nmconnection image.iso").success();
    for (line, taken) in [
        (format!("network keyfiles -o new/out {}", hosts.join(" ")), "new/out/host1/eth1.nmconnection"),
        ("iso extract pxe image.iso".to_owned(), "image-initrd.img"),
        ("iso extract pxe image.iso".to_owned(), "image-rootfs.img"),
        ("iso extract pxe image.iso".to_owned(), "image-vmlinuz"),
        ("iso network extract -C new/out image.iso".to_owned(), "new/out/wired.nmconnection"),
        ("dev extract initrd -v -C new/out initrd.img".to_owned(), "new/out/etc/coreos/features.json"),
    ] {
        scratch.write(taken, "mine");
        let before = scratch.names();
        let output = scratch.kindling(&line);
        output.failure("File exists");
        assert!(output.stderr.contains(taken), "{line}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{line}: {}", output.text());
        assert_eq!(scratch.names(), before, "{line}");
        assert!(!scratch.has("new/out/host0"), "{line}");
        assert_eq!(scratch.read(taken), b"mine");
        scratch.remove(taken);
        let _ = fs::remove_dir_all(scratch.path("new"));
        let printed = scratch.kindling(&line).printed();
        assert!(printed.lines().count() > 1, "{printed}");
        printed.lines().for_each(|path| scratch.remove(path));
        let _ = fs::remove_dir_all(scratch.path("new"));
    }
}

/// As the program that Kindling stands in for: the current directory.
#[test]
fn a_folder_without_a_name_is_the_current_one() {
    let scratch = scratch_with_initrd();
    scratch.kindling("iso network embed -k wired.nmconnection image.iso").success();
    scratch.remove("wired.nmconnection");
    for (line, file) in [
        (&["iso", "extract", "pxe", "-o", "", "image.iso"][..], "image-vmlinuz"),
        (&["iso", "network", "extract", "-C", "", "image.iso"][..], "wired.nmconnection"),
        (&["dev", "extract", "initrd", "-v", "-C", "", "initrd.img"][..], "etc/coreos/features.json"),
    ] {
        let printed = scratch.command(line).output().printed();
        assert!(printed.lines().any(|path| path == file), "{line:?}: {printed}");
        assert!(scratch.has(file), "{line:?}");
    }
    scratch.command(["iso", "extract", "pxe", ""]).output().failure("opening");
}

#[test]
fn a_file_without_a_name_is_told_of() {
    let scratch = scratch_with_initrd();
    let before = scratch.names();
    for verb in WRITING_VERBS.iter().chain(&["pxe ignition wrap -i config.ign -o {}"]) {
        let words = verb.split(' ').map(|word| if word == "{}" { "" } else { word });
        let output = scratch.command(words).output();
        if !verb.ends_with("--output-rootfs {}") {
            output.failure("writing \"\"");
        }
        assert_ne!(output.status.code(), Some(0));
    }
    assert_eq!(scratch.names(), before);
}

/// A new layout moves bytes: what it is written over would be read from the wrong places.
#[test]
fn a_new_layout_in_place_is_refused_with_what_to_do() {
    let scratch = usual().scratch();
    let line = format!("iso kargs modify --grow -a long={} image.iso", "x".repeat(1500));
    let output = scratch.kindling(&line);
    output.failure("image.iso");
    output.failure("cannot be written in place: name a new file with -o");
    assert!(scratch.read("image.iso") == usual().bytes);
}

#[test]
fn a_folder_that_is_missing_is_not_made_for_a_file() {
    let scratch = scratch_with_initrd();
    let before = scratch.names();
    for verb in WRITING_VERBS.iter().chain(&["pxe ignition wrap -i config.ign -o {}"]) {
        let output = scratch.kindling(&verb.replace("{}", "no/such/out"));
        output.failure("No such file or directory");
        assert!(output.stderr.contains("no/such/out"), "{verb}: {}", output.stderr);
        assert_eq!(scratch.names(), before, "{verb}");
    }
}

#[test]
fn a_link_to_an_image_is_edited_through() {
    let scratch = usual().scratch();
    fs::create_dir(scratch.path("real")).unwrap();
    fs::rename(scratch.path("image.iso"), scratch.path("real/image.iso")).unwrap();
    symlink("real/image.iso", scratch.path("link.iso")).unwrap();
    scratch.kindling("iso kargs modify -a quiet link.iso").success();
    assert!(scratch.path("link.iso").symlink_metadata().unwrap().is_symlink());
    assert!(scratch.kindling("iso kargs show real/image.iso").printed().ends_with(" quiet\n"));
}

#[test]
fn an_edit_in_place_keeps_the_file_its_mode_and_its_length() {
    use std::os::unix::fs::MetadataExt;
    let scratch = usual().scratch();
    // Something behind the image: bytes that belong to nobody are left alone.
    let longer = [usual().bytes.as_slice(), b"behind the image"].concat();
    scratch.write("image.iso", &longer);
    fs::set_permissions(scratch.path("image.iso"), Permissions::from_mode(0o640)).unwrap();
    let inode = |scratch: &Scratch| scratch.path("image.iso").metadata().unwrap().ino();
    let before = inode(&scratch);
    scratch.kindling("iso customize --live-ignition config.ign --live-karg-append quiet image.iso").success();
    assert_eq!((inode(&scratch), mode(&scratch.files(), "image.iso")), (before, 0o640));
    scratch.kindling("iso reset image.iso").success();
    assert!(scratch.read("image.iso") == longer);
}

#[test]
fn names_with_blanks_and_dashes_are_names() {
    let scratch = usual().scratch();
    let odd = "-o an image\u{e9} .iso";
    scratch.write(odd, &usual().bytes);
    let shown = scratch.command(["iso", "kargs", "show", "--", odd]).output().printed();
    assert_eq!(shown.trim_end(), usual().recipe.default_kargs());
    scratch
        .command(["iso", "kargs", "modify", "-a", "quiet", "-o", "out put.iso", "--", odd])
        .output()
        .success();
    let listed = scratch.command(["iso", "extract", "pxe", "--", odd]).output().printed();
    assert!(listed.contains("./-o an image\u{e9} -vmlinuz"), "{listed}");
}
