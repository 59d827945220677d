//! The command line of QEMU.

use std::path::Path;
use std::process::Command;

use super::{BootTest, BootTestError, Firmware, Media};

/// The program.
const QEMU: &str = "qemu-system-x86_64";

/// UEFI and its variables, where distributions have them.
const UEFI: [(&str, &str); 3] = [
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
    ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
];
/// The same for Secure Boot, with the keys that machines are sold with.
const SECURE_BOOT: [(&str, &str); 3] = [
    ("/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd", "/usr/share/edk2/ovmf/OVMF_VARS.secboot.fd"),
    ("/usr/share/OVMF/OVMF_CODE.secboot.fd", "/usr/share/OVMF/OVMF_VARS.ms.fd"),
];

pub(super) fn command(test: &BootTest) -> Result<Command, BootTestError> {
    if matches!(test.media, Media::Http | Media::Ipxe) && !is_url(&test.image) {
        return Err(BootTestError::NeedsUrl { image: test.image.clone() });
    }
    let mut command = Command::new(QEMU);
    if !test.emulate {
        // The first accelerator that there is counts.
        command.args(["-accel", "kvm"]);
    }
    // RHEL 9 and later want more of a processor than the oldest one has.
    command.args(["-accel", "tcg", "-cpu", "max", "-machine", "q35"]);
    command.args(["-nodefaults", "-no-reboot", "-display", "none", "-vga", "std", "-serial", "stdio"]);
    command.args(["-m", &test.memory_mib.to_string(), "-device", "virtio-rng-pci"]);
    match test.firmware {
        Firmware::Bios => {}
        Firmware::Uefi => add_firmware(&mut command, &UEFI)?,
        Firmware::SecureBoot => {
            command.args(["-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"]);
            add_firmware(&mut command, &SECURE_BOOT)?;
        }
    }
    if test.media == Media::Ipxe {
        command.args(["-netdev", &format!("user,id=net,bootfile={}", value(&test.image))]);
        command.args(["-device", "virtio-net-pci,netdev=net,bootindex=0"]);
        return Ok(command);
    }
    let drive = format!("if=none,id=image,format=raw,readonly=on,file={}", value(&file_name(&test.image)));
    command.args(["-drive", &drive]);
    match test.media {
        Media::Usb => {
            command.args(["-device", "qemu-xhci", "-device", "usb-storage,drive=image,bootindex=0"])
        }
        _ => command.args(["-device", "ide-cd,drive=image,bootindex=0"]),
    };
    // Without its ROM, so that firmware does not try it.
    command.args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="]);
    Ok(command)
}

fn add_firmware(command: &mut Command, known: &[(&'static str, &'static str)]) -> Result<(), BootTestError> {
    let found =
        known.iter().find(|(code, variables)| Path::new(code).is_file() && Path::new(variables).is_file());
    let Some((code, variables)) = found else {
        let looked_for = known.iter().map(|(code, _)| *code).collect();
        return Err(BootTestError::NoFirmware { looked_for });
    };
    command.args(["-drive", &format!("if=pflash,unit=0,format=raw,readonly=on,file={code}")]);
    // What the firmware writes into its variables is for this boot alone.
    command.args(["-drive", &format!("if=pflash,unit=1,format=raw,snapshot=on,file={variables}")]);
    Ok(())
}

fn is_url(image: &str) -> bool {
    image.starts_with("http://") || image.starts_with("https://")
}

/// A file by a name that QEMU takes for no protocol, whatever colons are in it.
fn file_name(image: &str) -> String {
    if is_url(image) || image.starts_with('/') { image.to_owned() } else { format!("./{image}") }
}

/// The value of an option, in which a comma is two.
fn value(text: &str) -> String {
    text.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(test: &BootTest) -> String {
        let command = command(test).unwrap();
        command.get_args().map(|it| it.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_are_names_and_not_options() {
        let line = arguments(&BootTest::new("nbd:a,snapshot=on.iso"));
        assert!(line.contains("file=./nbd:a,,snapshot=on.iso "), "{line}");
        let line = arguments(&BootTest::new("http://192.0.2.1/a,b.iso"));
        assert!(line.contains("file=http://192.0.2.1/a,,b.iso "), "{line}");
        let test = BootTest { media: Media::Ipxe, ..BootTest::new("http://192.0.2.1/a,b") };
        assert!(arguments(&test).contains("bootfile=http://192.0.2.1/a,,b "));
    }

    #[test]
    fn kvm_is_used_where_it_is_there() {
        let test = BootTest::new("a.iso");
        assert!(arguments(&test).starts_with("-accel kvm -accel tcg "));
        assert!(arguments(&BootTest { emulate: true, ..test }).starts_with("-accel tcg "));
    }

    #[test]
    fn what_needs_a_url_takes_no_file() {
        for media in [Media::Http, Media::Ipxe] {
            let refused = command(&BootTest { media, ..BootTest::new("a.iso") }).unwrap_err();
            assert!(matches!(refused, BootTestError::NeedsUrl { image } if image == "a.iso"));
        }
    }
}
