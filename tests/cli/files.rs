//! Files that are missing, invalid, existing or not writable.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use crate::support::{KINDLING, ProgramRun, Scratch, report_skipped};
use crate::{file_mode, full_featured_image};

/// Every verb that reads an image, with a placeholder for its name.
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

/// Runs all verbs on a file that none of them accepts. Each must name the file and leave no output.
#[track_caller]
fn assert_all_refuse(scratch: &Scratch, verbs: &[&str], name: &str, phrase: &str) {
    let before = scratch.names();
    for verb in verbs {
        let output = scratch.run_kindling(&verb.replace("{}", name));
        // `diff` reports a difference with exit code 1, so its errors have another code.
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
        assert!(!scratch.has_file("pxe") && !scratch.has_file("out"), "{verb} {name} created a folder");
    }
}

#[test]
fn missing_file_is_named() {
    let scratch = full_featured_image().scratch_with_image();
    for verbs in [IMAGE_VERBS, INITRD_VERBS] {
        assert_all_refuse(&scratch, verbs, "missing.file", "No such file or directory");
        assert_all_refuse(&scratch, verbs, "image.iso/inside", "Not a directory");
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
        scratch.run_kindling(line).expect_failure("missing.file");
    }
    assert!(scratch.read("image.iso") == full_featured_image().bytes);
}

#[test]
fn rejects_folder_as_image() {
    let scratch = full_featured_image().scratch_with_image();
    fs::create_dir(scratch.path("folder.iso")).unwrap();
    for verbs in [IMAGE_VERBS, INITRD_VERBS] {
        assert_all_refuse(&scratch, verbs, "folder.iso", "directory");
    }
    scratch.run_kindling("iso ignition embed -i folder.iso image.iso").expect_failure("folder.iso");
}

#[test]
fn rejects_empty_file() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write("empty.iso", "");
    assert_all_refuse(&scratch, IMAGE_VERBS, "empty.iso", "");
    scratch.write("short.iso", "short");
    assert_all_refuse(&scratch, IMAGE_VERBS, "short.iso", "");
    // An empty file is an archive without members.
    assert_eq!(scratch.run_kindling("dev show initrd empty.iso").expect_text(), "");
    scratch
        .run_kindling("pxe customize -o out.img empty.iso")
        .expect_failure("not a CoreOS live initramfs image");
    assert!(!scratch.has_file("out.img"));
}

#[test]
fn truncated_image_is_distinguished_from_an_invalid_one() {
    let scratch = full_featured_image().scratch_with_image();
    for divisor in [2, 3, 10] {
        scratch
            .write("image.part", &full_featured_image().bytes[..full_featured_image().bytes.len() / divisor]);
        assert_all_refuse(&scratch, IMAGE_VERBS, "image.part", "ISO image is incomplete");
    }
}

#[test]
fn rejects_files_that_are_neither_image_nor_archive() {
    let scratch = full_featured_image().scratch_with_image();
    let text = "no image and no archive\n".repeat(10_000);
    scratch.write("text.file", text);
    assert_all_refuse(&scratch, IMAGE_VERBS, "text.file", "");
    assert_all_refuse(&scratch, INITRD_VERBS, "text.file", "decoding");
}

#[test]
fn read_only_image_is_copied_but_not_edited() {
    let scratch = full_featured_image().scratch_with_image();
    fs::set_permissions(scratch.path("image.iso"), Permissions::from_mode(0o400)).unwrap();
    scratch.run_kindling("iso kargs modify -a quiet -o out.iso image.iso").expect_success();
    scratch.run_kindling("iso inspect image.iso").expect_success();
    if OpenOptions::new().write(true).open(scratch.path("image.iso")).is_ok() {
        report_skipped("this user ignores file modes");
        return;
    }
    let output = scratch.run_kindling("iso kargs modify -a quiet image.iso");
    output.expect_failure("Permission denied");
    assert!(output.stderr.contains("image.iso"));
    fs::set_permissions(scratch.path("image.iso"), Permissions::from_mode(0o000)).unwrap();
    scratch.run_kindling("iso inspect image.iso").expect_failure("Permission denied");
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

fn scratch_with_extracted_initrd() -> Scratch {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write("initrd.img", full_featured_image().file_bytes("images/pxeboot/initrd.img"));
    scratch
}

#[test]
fn existing_output_is_refused_and_kept() {
    let scratch = scratch_with_extracted_initrd();
    scratch.write("taken", "mine");
    symlink("nowhere", scratch.path("dangling")).unwrap();
    fs::create_dir(scratch.path("folder")).unwrap();
    let before = scratch.names();
    for verb in WRITING_VERBS {
        for name in ["taken", "dangling", "folder", "image.iso", "./image.iso"] {
            let output = scratch.run_kindling(&verb.replace("{}", name));
            output.expect_failure("File exists");
            assert!(output.stderr.contains(name), "{verb}: {}", output.stderr);
            assert!(output.stderr.contains("use another path for "), "{verb}: {}", output.stderr);
            assert!(output.stdout.is_empty(), "{verb}");
        }
    }
    assert_eq!(scratch.names(), before);
    assert_eq!(scratch.read("taken"), b"mine");
    assert!(scratch.read("image.iso") == full_featured_image().bytes);
    assert!(!scratch.path("nowhere").exists());
}

#[test]
fn directory_option_with_an_unusable_path_is_named() {
    let scratch = scratch_with_extracted_initrd();
    scratch.write("file", "mine");
    symlink("nowhere", scratch.path("link")).unwrap();
    scratch.write("eth0.yaml", "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n");
    for (line, option) in [
        ("serve --listen 127.0.0.1:0 --data-dir {}", "--data-dir (KINDLING_DATA_DIR)"),
        ("serve --listen 127.0.0.1:0 --images-dir {}", "--images-dir (KINDLING_IMAGES_DIR)"),
        ("serve --listen 127.0.0.1:0 --files {}", "--files (KINDLING_FILES)"),
        ("auth keys --out {}", "--out"),
        ("iso extract pxe image.iso -o {}", "--output-dir"),
        ("network keyfiles eth0.yaml -o {}", "--output"),
        ("dev extract initrd initrd.img -C {}", "--directory"),
        ("man {}", "DIR"),
    ] {
        for (path, reason) in [
            ("file", "file is not a directory; remove it"),
            ("file/x", "file is not a directory; remove it"),
            ("link", "link is a symbolic link whose target does not exist; create the target"),
            ("link/x", "link is a symbolic link whose target does not exist; create the target"),
        ] {
            let output = scratch.run_kindling(&line.replace("{}", path));
            output.expect_failure("cannot use directory ");
            output.expect_failure(&format!(": {reason}, or use another path for {option}"));
        }
    }
    assert_eq!(scratch.read("file"), b"mine");
}

/// Runs as another user, because root may write to any directory.
#[test]
fn directory_without_permission_names_the_option() {
    if !rustix::process::geteuid().is_root() {
        report_skipped("not root");
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(scratch.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(scratch.path("data")).unwrap();
    for (path, at) in [("data", "data"), ("data/x", "data")] {
        let mut command = std::process::Command::new(KINDLING);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir", path]).current_dir(scratch.folder());
        command.uid(64_124).gid(64_124);
        ProgramRun::from(command).run().expect_failure(&format!(
            "cannot use directory {path}: this user cannot create files in {at}: Permission denied (os error 13); change its permissions, or use another path \
             for --data-dir (KINDLING_DATA_DIR)"
        ));
    }
}

/// If one of several output names exists, the command writes no file and prints no path.
#[test]
fn outputs_of_one_command_appear_together_or_not_at_all() {
    let scratch = scratch_with_extracted_initrd();
    let hosts = ["eth0", "eth1"].map(|name| {
        let text = format!("interfaces:\n- name: {name}\n  type: ethernet\n  state: up\n");
        scratch.write(&format!("{name}.yaml"), text);
        format!("{name}.yaml")
    });
    scratch.write("a.nmconnection", "[a]\n");
    scratch
        .run_kindling("iso network embed -k a.nmconnection -k wired.nmconnection image.iso")
        .expect_success();
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
        let output = scratch.run_kindling(&line);
        output.expect_failure("File exists");
        assert!(output.stderr.contains(taken), "{line}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{line}: {}", output.stdout_text());
        assert_eq!(scratch.names(), before, "{line}");
        assert!(!scratch.has_file("new/out/host0"), "{line}");
        assert_eq!(scratch.read(taken), b"mine");
        scratch.remove(taken);
        let _ = fs::remove_dir_all(scratch.path("new"));
        let printed = scratch.run_kindling(&line).expect_text();
        assert!(printed.lines().count() > 1, "{printed}");
        printed.lines().for_each(|path| scratch.remove(path));
        let _ = fs::remove_dir_all(scratch.path("new"));
    }
}

/// An empty folder name means the current directory, as for `coreos-installer`.
#[test]
fn empty_folder_name_is_the_current_directory() {
    let scratch = scratch_with_extracted_initrd();
    scratch.run_kindling("iso network embed -k wired.nmconnection image.iso").expect_success();
    scratch.remove("wired.nmconnection");
    for (line, file) in [
        (&["iso", "extract", "pxe", "-o", "", "image.iso"][..], "image-vmlinuz"),
        (&["iso", "network", "extract", "-C", "", "image.iso"][..], "wired.nmconnection"),
        (&["dev", "extract", "initrd", "-v", "-C", "", "initrd.img"][..], "etc/coreos/features.json"),
    ] {
        let printed = scratch.command(line).run().expect_text();
        assert!(printed.lines().any(|path| path == file), "{line:?}: {printed}");
        assert!(scratch.has_file(file), "{line:?}");
    }
    scratch.command(["iso", "extract", "pxe", ""]).run().expect_failure("opening");
}

#[test]
fn output_without_a_name_is_reported() {
    let scratch = scratch_with_extracted_initrd();
    let before = scratch.names();
    for verb in WRITING_VERBS.iter().chain(&["pxe ignition wrap -i config.ign -o {}"]) {
        let words = verb.split(' ').map(|word| if word == "{}" { "" } else { word });
        let output = scratch.command(words).run();
        if !verb.ends_with("--output-rootfs {}") {
            output.expect_failure("writing \"\"");
        }
        assert_ne!(output.status.code(), Some(0));
    }
    assert_eq!(scratch.names(), before);
}

/// A re-layout moves bytes, so in-place output would overwrite bytes before they are read.
#[test]
fn in_place_relayout_is_refused_with_advice() {
    let scratch = full_featured_image().scratch_with_image();
    let line = format!("iso kargs modify --grow -a long={} image.iso", "x".repeat(1500));
    let output = scratch.run_kindling(&line);
    output.expect_failure("image.iso");
    output.expect_failure("cannot be written in place; name a new file with -o");
    assert!(scratch.read("image.iso") == full_featured_image().bytes);
}

#[test]
fn missing_output_folder_is_not_created() {
    let scratch = scratch_with_extracted_initrd();
    let before = scratch.names();
    for verb in WRITING_VERBS.iter().chain(&["pxe ignition wrap -i config.ign -o {}"]) {
        let output = scratch.run_kindling(&verb.replace("{}", "no/such/out"));
        output.expect_failure("No such file or directory");
        assert!(output.stderr.contains("no/such/out"), "{verb}: {}", output.stderr);
        assert_eq!(scratch.names(), before, "{verb}");
    }
}

#[test]
fn symbolic_link_is_followed_by_in_place_edit() {
    let scratch = full_featured_image().scratch_with_image();
    fs::create_dir(scratch.path("real")).unwrap();
    fs::rename(scratch.path("image.iso"), scratch.path("real/image.iso")).unwrap();
    symlink("real/image.iso", scratch.path("link.iso")).unwrap();
    scratch.run_kindling("iso kargs modify -a quiet link.iso").expect_success();
    assert!(scratch.path("link.iso").symlink_metadata().unwrap().is_symlink());
    assert!(scratch.run_kindling("iso kargs show real/image.iso").expect_text().ends_with(" quiet\n"));
}

#[test]
fn in_place_edit_keeps_inode_mode_and_length() {
    use std::os::unix::fs::MetadataExt;
    let scratch = full_featured_image().scratch_with_image();
    // The edit keeps bytes after the end of the image.
    let longer = [full_featured_image().bytes.as_slice(), b"behind the image"].concat();
    scratch.write("image.iso", &longer);
    fs::set_permissions(scratch.path("image.iso"), Permissions::from_mode(0o640)).unwrap();
    let inode = |scratch: &Scratch| scratch.path("image.iso").metadata().unwrap().ino();
    let before = inode(&scratch);
    scratch
        .run_kindling("iso customize --live-ignition config.ign --live-karg-append quiet image.iso")
        .expect_success();
    assert_eq!((inode(&scratch), file_mode(&scratch.files(), "image.iso")), (before, 0o640));
    scratch.run_kindling("iso reset image.iso").expect_success();
    assert!(scratch.read("image.iso") == longer);
}

#[test]
fn names_with_spaces_and_dashes_are_accepted() {
    let scratch = full_featured_image().scratch_with_image();
    let odd = "-o an image\u{e9} .iso";
    scratch.write(odd, &full_featured_image().bytes);
    let output = scratch.command(["iso", "kargs", "show", "--", odd]).run().expect_text();
    assert_eq!(output.trim_end(), full_featured_image().recipe.default_kargs());
    scratch
        .command(["iso", "kargs", "modify", "-a", "quiet", "-o", "out put.iso", "--", odd])
        .run()
        .expect_success();
    let listed = scratch.command(["iso", "extract", "pxe", "--", odd]).run().expect_text();
    assert!(listed.contains("./-o an image\u{e9} -vmlinuz"), "{listed}");
}
